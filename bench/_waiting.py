"""The program of `bench/waits.py`: threads that wait in known ways.

    python _waiting.py PATH      writes, for each thread, the ns that it has waited, as JSON

Each thread has the name of its kind of wait, and measures its waits itself.
"""

from __future__ import annotations

import _thread
import ctypes
import json
import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

WAITS = 25
WAIT_S = 0.02
MIN_GIL_WAIT_NS = 20_000
"""Shorter waits for the GIL have no slice."""


def wait_for_lock() -> int:
    lock, taken = threading.Lock(), threading.Semaphore(0)

    def hold() -> None:
        lock.acquire()
        taken.release()
        time.sleep(WAIT_S)
        lock.release()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.acquire()
    begin = time.perf_counter_ns()
    with lock:
        waited = time.perf_counter_ns() - begin
    holder.join()
    return waited


def wait_for_item() -> int:
    items: queue.Queue[int] = queue.Queue()
    timer = threading.Timer(WAIT_S, items.put, [1])
    timer.start()
    begin = time.perf_counter_ns()
    items.get()
    waited = time.perf_counter_ns() - begin
    timer.join()
    return waited


def sleep() -> int:
    begin = time.perf_counter_ns()
    time.sleep(WAIT_S)
    return time.perf_counter_ns() - begin


def read() -> int:
    from_, to = os.pipe()
    timer = threading.Timer(WAIT_S, os.write, [to, b"x"])
    timer.start()
    begin = time.perf_counter_ns()
    os.read(from_, 1)
    waited = time.perf_counter_ns() - begin
    timer.join()
    os.close(from_)
    os.close(to)
    return waited


def wait_for_gil() -> int:
    """Want the GIL all the time while another thread holds it in a C function.

    A C function reads the clock while the GIL is released, just before this thread wants it again.
    When the other thread has asked for the GIL, it is lost between two such calls.  Not counted is
    the time in which this thread could run, but other threads, as of the recorder, had its CPU.
    """
    read_clock, clock = ctypes.CDLL(None).clock_gettime, (ctypes.c_long * 2)()
    hold_gil = ctypes.PyDLL(None).usleep
    held: list[int] = []

    def hold() -> None:
        time.sleep(0.001)
        held.append(hold_gil(int(WAIT_S * 1e6)))

    with Delays() as delays:
        _thread.start_new_thread(hold, ())
        waited, delayed, taken = 0, delays.ns(), time.monotonic_ns()
        while not held:
            read_clock(time.CLOCK_MONOTONIC, clock)
            before, released = taken, clock[0] * 10**9 + clock[1]
            taken = time.monotonic_ns()
            times = [ns for ns in (released - before, taken - released) if ns >= MIN_GIL_WAIT_NS]
            last, delayed = delayed, delays.ns()
            waited += max(sum(times) - (delayed - last), 0)
    return waited


class Delays:
    """How long the calling thread was ready to run and had no CPU, as the kernel tells."""

    def __enter__(self) -> Self:
        self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self._buffer = ctypes.create_string_buffer(128)
        # Unlike os.pread, this function keeps the GIL.
        self._read = ctypes.PyDLL(None).pread
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def ns(self) -> int:
        size = self._read(self._file, self._buffer, len(self._buffer), ctypes.c_long(0))
        return int(self._buffer.raw[:size].split()[1])


KINDS: dict[str, Callable[[], int]] = {
    "lock": wait_for_lock,
    "queue": wait_for_item,
    "sleep": sleep,
    "read": read,
    "gil": wait_for_gil,
}


def main() -> None:
    waited = dict.fromkeys(KINDS, 0)

    def work(kind: str) -> None:
        waited[kind] = sum(KINDS[kind]() for _ in range(WAITS))

    for kind in KINDS:
        thread = threading.Thread(target=work, args=(kind,), name=kind)
        thread.start()
        thread.join()
    Path(sys.argv[1]).write_text(json.dumps(waited))


if __name__ == "__main__":
    main()
