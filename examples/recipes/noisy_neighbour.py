"""A noisy neighbour: requests are slow, because other processes of the machine take the CPU away.

cd examples/recipes
stretto record --system --config noisy_neighbour.pbtxt noisy_neighbour.py
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time

NEIGHBOURS = 3
REQUESTS = 20


def handle(order: str) -> str:
    """Answers a request: 10 ms of work, if nobody disturbs."""
    digest = order.encode()
    for _ in range(20_000):
        digest = hashlib.sha256(digest).digest()
    return digest.hex()


def serve() -> None:
    for number in range(REQUESTS):
        handle(f"order {number}")
        time.sleep(0.02)


def main() -> None:
    # A container with one CPU, which a backup shares with the server.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    command = ["sha256sum", "/dev/zero"]
    backup = [subprocess.Popen(command) for _ in range(NEIGHBOURS)]
    try:
        serve()
    finally:
        for process in backup:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
