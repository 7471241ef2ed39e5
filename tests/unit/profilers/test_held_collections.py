"""Threads of ours hold collections back while they work; the program's own are as ever."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

import stretto
from stretto.profilers import gil_waits
from tests.support.call_slices import recorded

HOLD_US = 20_000
OBJECTS = 3000
"""More than the threshold of any version."""
TIMEOUT_S = 30

pytestmark = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="no waits for the GIL"
)


class Cycle:
    """An object that only a collection frees."""

    finalizers: ClassVar[list[int]] = []

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        self.finalizers.append(threading.get_native_id())


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    gil_waits.install()
    Cycle.finalizers.clear()
    before = gc.get_threshold()
    yield
    assert gc.get_threshold() == before


class Work:
    """What the thread that writes waits does, while it is in a function of ours."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.thread = 0
        self._work, self._make_track = work, gil_waits._make_track
        monkeypatch.setattr(gil_waits, "_make_track", self._run)

    def _run(self, thread: stretto.Track) -> stretto.Track:
        if threading.current_thread() is not threading.main_thread() and not self.thread:
            self.thread = threading.get_native_id()
            self.begun.set()
            self._work()
        return self._make_track(thread)

    def wait_for_begin(self) -> None:
        """Make another thread wait for the GIL, and wait until this is written."""
        hold = ctypes.PyDLL(None).usleep
        while not self.begun.is_set():
            thread = threading.Thread(target=hold, args=(HOLD_US,))
            thread.start()
            thread.join()


def test_finalizers_run_on_no_thread_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch, lambda: [Cycle() for _ in range(OBJECTS)].clear())
    with recorded("python.gil_waits"):
        work.wait_for_begin()
    gc.collect()
    assert len(Cycle.finalizers) == OBJECTS
    assert work.thread not in Cycle.finalizers


def test_program_may_collect_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch, lambda: work.may_end.wait(TIMEOUT_S))
    with recorded("python.gil_waits"):
        work.wait_for_begin()
        Cycle()
        assert gc.collect() > 0
        assert Cycle.finalizers == [threading.get_native_id()]
        work.may_end.set()


def test_program_finds_its_thresholds_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_threshold()
    work = Work(monkeypatch, lambda: work.may_end.wait(TIMEOUT_S))
    with recorded("python.gil_waits"):
        work.wait_for_begin()
        assert gc.get_threshold() == before
        assert gc.isenabled()
        work.may_end.set()


def test_objects_of_the_program_are_collected_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch, lambda: work.may_end.wait(TIMEOUT_S))
    with recorded("python.gil_waits"):
        work.wait_for_begin()
        kept = [Cycle() if n % 2 else [] for n in range(4 * OBJECTS)]
        kept.clear()
        more = [[] for n in range(2 * OBJECTS)]
        assert threading.get_native_id() in Cycle.finalizers
        work.may_end.set()
    del more
    assert gc.get_count()[0] > -OBJECTS


def test_collection_that_ends_meanwhile_is_not_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = Work(monkeypatch, lambda: work.may_end.wait(TIMEOUT_S))

    def wait_for_work(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            work.wait_for_begin()

    with recorded("python.gil_waits"):
        gc.callbacks.append(wait_for_work)
        gc.collect()
        gc.callbacks.remove(wait_for_work)
        work.may_end.set()
    Cycle()
    assert gc.collect() > 0
    assert Cycle.finalizers
