"""A lock convoy: four threads that could work at once, and one lock around too much.

stretto record --waits examples/recipes/lock_convoy.py
"""

from __future__ import annotations

import threading
import time

THREADS = 4
REPORTS = 12

totals: dict[str, int] = {}
lock = threading.Lock()


def fetch(name: str) -> int:
    """Asks a slow service."""
    time.sleep(0.02)
    return len(name)


def report(name: str) -> None:
    with lock:  # only the line with `totals` needs it
        value = fetch(name)
        totals[name] = value


def work(number: int) -> None:
    for index in range(REPORTS):
        report(f"report {number}.{index}")


def main() -> None:
    threads = [
        threading.Thread(target=work, args=(number,), name=f"worker-{number}")
        for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
