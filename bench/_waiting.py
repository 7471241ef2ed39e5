"""The program of `bench/waits.py`: threads that wait in known ways.

    python _waiting.py PATH      writes the begin and end of each thread's waits, as JSON

Each thread has the name of its kind of wait, and measures its waits itself, by the trace's clock.
"""

from __future__ import annotations

import _thread
import ctypes
import json
import os
import queue
import resource
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

WAITS = 25
WAIT_S = 0.02
MIN_GIL_WAIT_NS = 20_000
"""Shorter waits for the GIL have no slice."""


Wait = tuple[int, int]
"""The begin and end of a wait, in ns of the trace's clock."""


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def wait_for_lock() -> Wait:
    lock, taken = threading.Lock(), threading.Semaphore(0)

    def hold() -> None:
        lock.acquire()
        taken.release()
        time.sleep(WAIT_S)
        lock.release()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.acquire()
    begin = now()
    with lock:
        end = now()
    holder.join()
    return begin, end


def wait_for_item() -> Wait:
    items: queue.Queue[int] = queue.Queue()
    timer = threading.Timer(WAIT_S, items.put, [1])
    timer.start()
    begin = now()
    items.get()
    end = now()
    timer.join()
    return begin, end


def sleep() -> Wait:
    begin = now()
    time.sleep(WAIT_S)
    return begin, now()


def read() -> Wait:
    from_, to = os.pipe()
    timer = threading.Timer(WAIT_S, os.write, [to, b"x"])
    timer.start()
    begin = now()
    os.read(from_, 1)
    end = now()
    timer.join()
    os.close(from_)
    os.close(to)
    return begin, end


def waits_for_gil() -> list[Wait]:
    """Want the GIL all the time while another thread holds it in C functions, `WAITS` times.

    A C function reads the clock while the GIL is released, just before this thread wants it again.
    When the other thread has asked for the GIL, it is lost between two such calls.

    A thread that waits for the GIL gives its CPU away, which the kernel counts.  A turn of the loop
    without that has no wait, however long it takes: the recorder may have had the CPU.
    """
    read_clock, clock = ctypes.CDLL(None).clock_gettime, (ctypes.c_long * 2)()
    hold_gil = ctypes.PyDLL(None).usleep
    ended: list[bool] = []

    def hold() -> None:
        for _ in range(WAITS):
            time.sleep(0.001)
            hold_gil(int(WAIT_S * 1e6))
        ended.append(True)

    _thread.start_new_thread(hold, ())
    waits: list[Wait] = []
    given_away, taken = times_cpu_was_given_away(), now()
    while not ended:
        read_clock(time.CLOCK_BOOTTIME, clock)
        before, released = taken, clock[0] * 10**9 + clock[1]
        taken = now()
        last, given_away = given_away, times_cpu_was_given_away()
        if given_away != last:
            waits += [(before, released), (released, taken)]
    return [wait for wait in waits if wait[1] - wait[0] >= MIN_GIL_WAIT_NS]


def times_cpu_was_given_away() -> int:
    """Return how often the calling thread has blocked.  It keeps the GIL."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def many(wait: Callable[[], Wait]) -> Callable[[], list[Wait]]:
    return lambda: [wait() for _ in range(WAITS)]


KINDS: dict[str, Callable[[], list[Wait]]] = {
    "lock": many(wait_for_lock),
    "queue": many(wait_for_item),
    "sleep": many(sleep),
    "read": many(read),
    "gil": waits_for_gil,
}


def main() -> None:
    waits: dict[str, list[Wait]] = {}

    def work(kind: str) -> None:
        waits[kind] = KINDS[kind]()

    for kind in KINDS:
        thread = threading.Thread(target=work, args=(kind,), name=kind)
        thread.start()
        thread.join()
    Path(sys.argv[1]).write_text(json.dumps(waits))


if __name__ == "__main__":
    main()
