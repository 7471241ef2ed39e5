from __future__ import annotations

import os
import threading

import pytest

from stretto.client import fork
from stretto.client import timer as timer_module
from stretto.client.timer import Timer


def test_function_is_called_in_intervals_until_the_timer_stops() -> None:
    called = threading.Semaphore(0)
    timer = Timer(called.release, 0, 0.001)
    timer.start()
    for _ in range(3):
        assert called.acquire(timeout=10)
    timer.stop()
    while called.acquire(blocking=False):
        pass
    assert not called.acquire(timeout=0.02)


def test_first_call_comes_after_the_phase() -> None:
    called = threading.Event()
    timer = Timer(called.set, 0.001, 1000)
    timer.start()
    assert called.wait(10)
    timer.stop()


def test_timer_that_stops_itself_ends() -> None:
    stopped = threading.Event()

    def stop() -> None:
        timer.stop()
        stopped.set()

    timer = Timer(stop, 0, 0.001)
    timer.start()
    assert stopped.wait(10)


def test_stopped_timer_leaves_the_hooks_of_forks() -> None:
    before = [*fork.before], [*fork.after_in_parent]
    timer = Timer(int, 0, 1000)
    timer.start()
    timer.stop()
    assert ([*fork.before], [*fork.after_in_parent]) == before


def test_fork_does_not_wait_for_a_thread_that_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: object) -> int:
        return 1  # As a thread that has no memory for its first call.

    monkeypatch.setattr(timer_module, "start_helper_thread", start)
    monkeypatch.setattr(timer_module, "START_TIMEOUT_S", 0.001)
    timer = Timer(int, 0, 1000)
    timer.start()
    timer.stop()


def test_timer_ends_if_no_thread_can_be_started_after_a_fork(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: object) -> int:
        raise RuntimeError("can't start new thread")

    timer = Timer(int, 0, 1000)
    timer.start()
    fork.before[-1]()
    monkeypatch.setattr(timer_module, "start_helper_thread", fail)
    fork.after_in_parent[-1]()
    timer.stop()


def test_thread_is_not_there_during_a_fork_and_returns_afterwards() -> None:
    ids: list[int] = []
    called = threading.Semaphore(0)

    def call() -> None:
        ids.append(threading.get_native_id())
        called.release()

    timer = Timer(call, 0, 0.001)
    timer.start()
    assert called.acquire(timeout=10)
    for hook in fork.before[-1:]:
        hook()
    assert str(ids[0]) not in os.listdir("/proc/self/task")
    for hook in fork.after_in_parent[-1:]:
        hook()
    while called.acquire(blocking=False):
        pass
    assert called.acquire(timeout=10)
    timer.stop()
