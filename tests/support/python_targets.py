"""Programs that tests sample from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HEAD = "import os, sys, threading, time\n"


@contextmanager
def running(source: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program until it has written a line; kill it at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, *options, "-c", HEAD + source],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # Children, too.
        process.communicate()


BUSY = """
def leaf(n):
    total = 0
    for i in range(n):
        total += i
    return total

def outer():
    return leaf(1000)

def waits():
    time.sleep(1000)  # sleep: what is sampled

threading.Thread(target=waits, daemon=True).start()
print("ready", flush=True)
while True:
    outer()
"""

ASLEEP = """
class Shop:
    def order(self):
        print("ready", flush=True)
        time.sleep(1000)  # sleep: what is sampled

def main():
    Shop().order()

main()
"""
