"""Waits with the same values are copied from each other: each has its own times and values."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from stretto.analysis import TraceProcessor
from stretto.profilers import lock_waits
from tests.support.call_slices import recorded

WAITS = 400
"""Several chunks of slices."""
LOCKS = 12
"""Two lists of them: more locks than there are kept slices."""
LONG_S = 0.3
"""Its times take more than the four bytes of a kept one."""
SHORT_S = 100e-6
VALUES = ("made_at", "held_by_tid", "timed_out")
Wait = tuple[int, int, tuple[Any, ...]]
"""Begin and end in ns, and the values."""


def waits_of(trace: bytes) -> list[Wait]:
    """Return the waits in the order of their begins."""
    columns = ", ".join(f"extract_arg(arg_set_id, 'debug.{name}')" for name in VALUES)
    query = f"select ts, dur, {columns} from slice where name = 'wait for lock' order by ts"
    with TraceProcessor(trace, engine="sqlite") as processor:
        rows = [tuple(row) for row in processor.query(query).fetchall()]
    return [(ts, ts + dur, tuple(values)) for ts, dur, *values in rows]


def held_by_thread(lock: threading.Lock) -> int | None:
    """Take the lock in a thread, which ends; return the kernel's id of the thread."""
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    return thread.native_id


def wait(lock: threading.Lock, seconds: float) -> tuple[int, int]:
    """Wait for a lock that stays held; return times around the wait, in ns."""
    begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert not lock.acquire(timeout=seconds)
    return begin, time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def assert_equal(found: list[Wait], expected: list[Wait]) -> None:
    assert [values for _, _, values in found] == [values for _, _, values in expected]
    for (begin, end, _), (earliest, latest, _) in zip(found, expected, strict=True):
        assert earliest - 1000 <= begin <= end <= latest + 1000


def test_waits_for_several_locks_have_their_own_values_and_times() -> None:
    lock_waits.install()
    choose = random.Random(7).choice
    expected: list[Wait] = []
    with recorded("python.waits") as result:
        first = [threading.Lock() for _ in range(LOCKS)]
        second = [threading.Lock() for _ in range(LOCKS)]
        holders = {lock: held_by_thread(lock) for lock in first + second}
        for _ in range(WAITS):
            lock = choose(first + second)
            begin, end = wait(lock, SHORT_S)
            expected.append((begin, end, (lock in first, holders[lock], 1)))
    found = waits_of(result.trace)
    places = sorted({values[0] for _, _, values in found})
    assert len(places) == 2
    assert_equal([(b, e, (v[0] == places[0], *v[1:])) for b, e, v in found], expected)


def test_wait_after_or_during_a_long_time_has_its_times() -> None:
    lock_waits.install()
    with recorded("python.waits") as result:
        lock = threading.Lock()
        lock.acquire()
        times = [wait(lock, SHORT_S) for _ in range(3)]
        times.append(wait(lock, LONG_S))
        times += [wait(lock, SHORT_S) for _ in range(2)]
        time.sleep(LONG_S)  # sleep: nothing is written meanwhile
        times += [wait(lock, SHORT_S) for _ in range(2)]
    found = waits_of(result.trace)
    assert_equal(found, [(*span, found[0][2]) for span in times])


def test_each_session_has_all_waits_while_it_records() -> None:
    lock_waits.install()
    lock = threading.Lock()
    lock.acquire()
    with recorded("python.waits") as outer:
        times = [wait(lock, SHORT_S) for _ in range(3)]
        with recorded("python.waits") as inner:
            both = [wait(lock, SHORT_S) for _ in range(3)]
        times += both + [wait(lock, SHORT_S) for _ in range(3)]
    for result, expected in ((inner, both), (outer, times)):
        found = waits_of(result.trace)
        assert_equal(found, [(*span, found[0][2]) for span in expected])
