"""Waits for the GIL are slices on a track below the waiting thread."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from stretto import _pyhooks
from stretto.analysis import TraceProcessor
from stretto.client import fork
from stretto.profilers import gil_waits
from tests.support.call_slices import recorded

HOLD_NS = 20_000_000
TOLERANCE_NS = 50_000
"""The clock of events is the processor's counter, scaled."""
SQL = """
    select slice.ts as begin, slice.ts + slice.dur as end, thread_track.name as track, thread.tid,
           thread.name as thread, extract_arg(slice.arg_set_id, 'debug.held_by_tid') as holder
    from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
    where slice.name = 'waiting for the GIL' order by begin"""


@pytest.fixture(autouse=True)
def installed() -> None:
    gil_waits.install()


class Wanting(threading.Thread):
    """A thread that wants the GIL all the time, and knows from when to when it has waited."""

    def __init__(self) -> None:
        super().__init__(name="wanting")
        self.waits: list[tuple[int, int]] = []
        self.begun = threading.Event()
        self.done = False

    def run(self) -> None:
        # The C function reads the clock while the GIL is released, just before the thread wants it.
        # When another thread has asked for the GIL, it is lost between two such calls.
        read_clock = ctypes.CDLL(None).clock_gettime
        clock = (ctypes.c_long * 2)()
        self.begun.set()
        taken = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        while not self.done:
            read_clock(time.CLOCK_BOOTTIME, clock)
            before, released = taken, clock[0] * 10**9 + clock[1]
            taken = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            self._note(before, released)
            self._note(released, taken)

    def _note(self, begin: int, end: int) -> None:
        if end - begin >= HOLD_NS:
            self.waits.append((begin, end))

    def while_held(self, rounds: int) -> list[tuple[int, int]]:
        """Hold the GIL in a C function until the thread has waited for it; return its waits.

        On a busy machine the thread has no CPU during some holds, and so does not wait.
        """
        hold = ctypes.PyDLL(None).usleep
        self.start()
        self.begun.wait()
        while len(self.waits) < rounds:
            hold(HOLD_NS // 1000 + 1000)
            time.sleep(0.001)  # sleep: without the GIL, which the thread then has
        _pyhooks.write_gil_waits()  # The thread's name is known while it lives.
        self.done = True
        self.join()
        return self.waits


def long_waits(trace: bytes, folder: Path) -> list[Any]:
    """Return the slices of waits that are as long as a hold."""
    path = folder / "trace"
    path.write_bytes(trace)
    with TraceProcessor(str(path), engine="sqlite") as processor:
        return [row for row in processor.query(SQL) if row.end - row.begin >= HOLD_NS]


def is_inside(row: Any, wait: tuple[int, int]) -> bool:
    """Whether a slice is inside of a known wait."""
    return bool(wait[0] - TOLERANCE_NS <= row.begin and row.end <= wait[1] + TOLERANCE_NS)


def test_slice_is_the_time_of_the_wait_and_names_the_holder(tmp_path: Path) -> None:
    wanting = Wanting()
    with recorded("python.gil_waits") as result:
        known = wanting.while_held(5)
    found = [row for row in long_waits(result.trace, tmp_path) if row.tid == wanting.native_id]
    deviations = []
    for row in found:
        assert (row.track, row.thread) == ("GIL", "wanting")
        ((released, taken),) = (wait for wait in known if is_inside(row, wait))
        deviations.append((1 - (row.end - row.begin) / (taken - released), row.holder))
    # A thread that loses its CPU meanwhile has a shorter slice, and the thread that writes waits
    # has the GIL now and then: not always.
    holders = {holder for deviation, holder in deviations if deviation < 0.02}
    assert threading.get_native_id() in holders


def test_holder_is_the_thread_that_held_the_gil_although_it_has_ended(tmp_path: Path) -> None:
    hold = ctypes.PyDLL(None).usleep
    with recorded("python.gil_waits") as result:
        spans = []
        for _ in range(8):
            begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            thread = threading.Thread(target=hold, args=(HOLD_NS // 1000 + 1000,))
            thread.start()
            thread.join()
            spans.append((begin, time.clock_gettime_ns(time.CLOCK_BOOTTIME), thread.native_id))
    own = threading.get_native_id()
    found = [row for row in long_waits(result.trace, tmp_path) if row.tid == own]
    assert found
    for row in found:
        ((_, _, holder),) = (span for span in spans if is_inside(row, span[:2]))
        assert row.holder == holder


def hog_of(cpu: int) -> subprocess.Popen[bytes]:
    """Return a process that uses a CPU without a pause."""
    code = f"import os; os.sched_setaffinity(0, [{cpu}])\nwhile True: pass"
    return subprocess.Popen([sys.executable, "-c", code])


def hand_over_to_a_thread_without_cpu(cpu: int) -> tuple[int, int]:
    """Give up the GIL to a thread that rarely has a CPU; return the ids of both threads."""
    taker: list[int] = []

    def take() -> None:
        os.sched_setaffinity(0, [cpu])
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        for _ in range(20):
            time.sleep(0.001)  # sleep: this thread then wants the GIL
        taker.append(threading.get_native_id())

    threading.Thread(target=take).start()
    while not taker:
        pass
    return threading.get_native_id(), taker[0]


def test_thread_that_gives_up_the_gil_waits_until_the_other_one_has_it() -> None:
    cpu = min(os.sched_getaffinity(0))
    with hog_of(cpu) as hog:
        try:
            with recorded("python.gil_waits") as result:
                giver, taker = hand_over_to_a_thread_without_cpu(cpu)
        finally:
            hog.kill()
    sql = """
        select dur, extract_arg(slice.arg_set_id, 'debug.taken_by_tid') as taker, thread.tid
        from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
        where slice.name = 'handing over the GIL' and dur >= 20000"""
    with TraceProcessor(result.trace, engine="sqlite") as processor:
        rows = list(processor.query(sql))
    assert any(row.tid == giver and row.taker == taker for row in rows)


def test_waits_of_other_conditions_are_no_waits_for_the_gil(tmp_path: Path) -> None:
    with recorded("python.gil_waits") as result:
        assert not threading.Event().wait(2 * HOLD_NS / 1e9)
    assert not long_waits(result.trace, tmp_path)


def test_second_recording_has_only_its_own_waits(tmp_path: Path) -> None:
    with recorded("python.gil_waits"):
        Wanting().while_held(1)
    Wanting().while_held(1)
    wanting = Wanting()
    with recorded("python.gil_waits") as result:
        known = wanting.while_held(1)
    found = [row for row in long_waits(result.trace, tmp_path) if row.tid == wanting.native_id]
    assert found
    assert all(any(is_inside(row, wait) for wait in known) for row in found)


def test_function_of_the_interpreter_is_restored_at_the_end() -> None:
    for _ in range(2):
        with recorded("python.gil_waits"):
            Wanting().while_held(1)
        # A slot with another address than that of the function itself would be a problem.
        assert _pyhooks.gil_waits_problem() is None


def test_reason_is_told_if_waits_cannot_be_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gil_waits, "start_gil_waits", lambda *_: "no such function")
    with recorded("python.gil_waits"):
        assert gil_waits.problems() == [
            "waits for the GIL are not recorded: no such function; the counter of hand-overs is"
        ]
    monkeypatch.undo()
    with recorded("python.gil_waits"):
        assert not gil_waits.problems()


def names_of_threads() -> list[str]:
    """Return the names of this process's native threads."""
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]


def wait_for_writer() -> None:
    """Wait until the thread that writes the waits has its name."""
    while "stretto-gil" not in names_of_threads():
        os.sched_yield()


def test_writer_runs_during_the_session_and_not_during_a_fork() -> None:
    with recorded("python.gil_waits"):
        wait_for_writer()
        for hook in fork.before:
            hook()
        try:
            assert "stretto-gil" not in names_of_threads()
        finally:
            for hook in fork.after_in_parent:
                hook()
        wait_for_writer()
    assert "stretto-gil" not in names_of_threads()


def test_child_of_a_fork_has_no_waits_of_its_parent() -> None:
    with recorded("python.gil_waits"):
        Wanting().while_held(1)
        pid = os.fork()
        if pid == 0:
            short, _, lost = _pyhooks.write_gil_waits()
            os._exit(bool(short or lost))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
