"""Measures how true waits are in a trace, and what recording them costs.

    python bench/waits.py [--json] [--rounds N]

sum KIND         `stretto record --waits --gil-waits`: how far the slices of waits differ in sum
                 from the waits that the program has measured itself, in per cent; `peer` is the
                 limit.
                 KIND is lock (`with lock`), queue (`Queue.get`), sleep, read (a pipe), or gil
                 (`--gil-waits`, while a C function holds the GIL, and its hand-overs)
sum KIND, system the same for the system calls of `--io-waits`, which needs root and tracefs
sum KIND, Python the same for the functions of `python.io_waits`, which needs no right
free lock        `with lock: pass` while waits are recorded, in ns; `peer` is without a recording
free RLock       the same for an RLock
free lock, off   the same after the recording; `peer` is before it
written wait     what a wait of 50 us, which is written, costs more than without a recording, in ns
                 of CPU time; `peer` is the limit.  The wait ends with cold caches, as each does
short wait       the same for one that is too short to be written: `lock.acquire(False)` of a lock
                 that is held, which is measured as a wait and does not block

States are interleaved; figures are medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from _row import Row

import stretto
from stretto._pyhooks import start_lock_waits, stop_lock_waits
from stretto.analysis import TraceProcessor
from stretto.profilers import lock_waits
from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig
from stretto.recorder.host.io_waits import missing_right

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROGRAM = str(Path(__file__).with_name("_waiting.py"))
SLICES = {
    "lock": ["wait for lock"],
    "queue": ["wait for notification", "wait for lock"],
    "sleep": ["time.sleep"],
    "read": ["posix.read"],
    "gil": ["waiting for the GIL", "handing over the GIL"],
}
SYSTEM_CALLS = {"sleep": ["clock_nanosleep"], "read": ["read"]}
FUNCTIONS = {"sleep": ["time.sleep"], "read": ["read"]}
"""The names of the slices. `put` notifies while it holds the queue's lock: `get` waits for both."""
MAX_DEVIATION = 2
MAX_WAIT_NS = 300
LOOPS = 20_000
PAIRS = 30
TIMED_WAITS = 20
"""Waits of 50 us each, with the recording or without."""
WAIT_S = 50e-6
TRIES = 500
Lock = AbstractContextManager[bool, None]
WAITS = """
    select slice.ts, slice.dur
    from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
    where slice.name in ({names}) and thread.name = {kind} and slice.category in ({categories})"""
IN_PYTHON = ["python.functions", "python.waits", "python.gil_waits"]


def deviations(
    options: list[str], kinds: dict[str, list[str]], categories: list[str], suffix: str = ""
) -> Iterator[Row]:
    """Record the program; compare the slices with what it has measured."""
    with tempfile.TemporaryDirectory() as name:
        trace, waited = Path(name) / "trace", Path(name) / "waited"
        command = [sys.executable, "-m", "stretto", "record", "-q", *options]
        subprocess.run([*command, "-o", str(trace), PROGRAM, str(waited)], check=True)
        known: dict[str, list[list[int]]] = json.loads(waited.read_text())
        with TraceProcessor(str(trace), engine="sqlite") as processor:
            for kind, slices in kinds.items():
                names, found = (", ".join(map(repr, words)) for words in (slices, categories))
                sql = WAITS.format(names=names, kind=repr(kind), categories=found)
                rows = [(row.ts, row.dur) for row in processor.query(sql)]
                deviation = abs(100 * (found_ns(rows, known[kind]) / known_ns(known[kind]) - 1))
                yield Row(f"sum {kind}{suffix}", deviation, MAX_DEVIATION, "% of the known waits")


def known_ns(waits: list[list[int]]) -> int:
    return sum(end - begin for begin, end in waits)


def found_ns(slices: list[tuple[int, int]], waits: list[list[int]]) -> int:
    """Return the sum of the slices that began in a known wait.

    The thread has also other ones: it waits until a thread that it starts has begun.
    """
    begins = [begin for begin, _ in waits]
    total = 0
    for ts, ns in slices:
        place = bisect_right(begins, ts) - 1
        if place >= 0 and ts < waits[place][1]:
            total += ns
    return total


def all_deviations() -> Iterator[Row]:
    """Compare the slices of all ways to record waits."""
    yield from deviations(["--waits", "--gil-waits"], SLICES, IN_PYTHON)
    if not missing_right():
        category = "linux.syscall_waits"
        yield from deviations(["--io-waits"], SYSTEM_CALLS, [category], ", system")
    category = "python.io_waits"
    yield from deviations(["--category", category], FUNCTIONS, [category], ", Python")


def recording() -> stretto.TracingSession:
    """Return a session that records waits only."""
    events = TrackEventConfig(enabled_categories=["python.waits"], disabled_categories=["*"])
    source = DataSourceConfig(name="track_event", track_event_config=events)
    config = TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=4096)],
        data_sources=[TraceConfig.DataSource(config=source)],
    )
    return stretto.TracingSession(config, backend="in_process")


def free_ns(lock: Lock) -> float:
    """Return the time to take and release a free lock, without that of the loop."""
    begin = time.thread_time_ns()
    for _ in range(LOOPS):
        with lock:
            pass
    middle = time.thread_time_ns()
    for _ in range(LOOPS):
        pass
    return (2 * middle - begin - time.thread_time_ns()) / LOOPS


def written_wait_ns(lock: threading.Lock) -> float:
    """Return the CPU time of a wait of 50 us for a lock that is held."""
    begin = time.thread_time_ns()
    for _ in range(TIMED_WAITS):
        lock.acquire(timeout=WAIT_S)
    return (time.thread_time_ns() - begin) / TIMED_WAITS


def short_wait_ns(lock: threading.Lock) -> float:
    """Return the CPU time of a try to take a lock that is held."""
    begin = time.thread_time_ns()
    for _ in range(TRIES):
        lock.acquire(False)
    return (time.thread_time_ns() - begin) / TRIES


def switched(on: bool) -> None:
    """Switch the recording of waits on or off; the session goes on."""
    if on:
        start_lock_waits(*lock_waits.templates, "hidden")
    else:
        stop_lock_waits()


def wait_cost(pairs: int, wait_ns: Callable[[threading.Lock], float]) -> float:
    """Return what recorded waits cost more than others: the median of neighbours' differences."""
    held = threading.Lock()
    held.acquire()

    def block(on: bool) -> float:
        switched(on)
        held.acquire(timeout=WAIT_S)
        return wait_ns(held)

    differences: list[float] = []
    for _ in range(pairs):
        found = {on: block(on) for on in random.sample([True, False], 2)}
        differences.append(found[True] - found[False])
    return median(differences)


def costs(rounds: int) -> Iterator[Row]:
    """Measure free and held locks with and without a recording."""
    locks: dict[str, Lock] = {"free lock": threading.Lock(), "free RLock": threading.RLock()}
    before = median(free_ns(locks["free lock"]) for _ in range(rounds))
    found: dict[tuple[str, bool], list[float]] = {}
    for _ in range(rounds):
        for on in random.sample([True, False], 2):
            context: AbstractContextManager[object] = recording() if on else nullcontext()
            with context:
                for name, lock in locks.items():
                    found.setdefault((name, on), []).append(free_ns(lock))
    for name in locks:
        yield Row(name, median(found[name, True]), median(found[name, False]), "ns")
    after = median(free_ns(locks["free lock"]) for _ in range(rounds))
    yield Row("free lock, off", after, before, "ns")
    with recording():
        written = wait_cost(rounds * PAIRS, written_wait_ns)
        short = wait_cost(rounds * PAIRS, short_wait_ns)
    yield Row("written wait", written, MAX_WAIT_NS, "ns of CPU time")
    yield Row("short wait", short, MAX_WAIT_NS, "ns of CPU time")


def main() -> None:
    """Measure all rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    parser.add_argument("--rounds", type=int, default=21, help="rounds of each state")
    options = parser.parse_args()
    for row in (*all_deviations(), *costs(options.rounds)):
        if options.json:
            print(row.as_json(), flush=True)
        else:
            print(f"{row.name:17} {row.ours:>9.3f} {row.peer:>9.3f} {row.unit}", flush=True)


if __name__ == "__main__":
    main()
