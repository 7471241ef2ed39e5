from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from stretto import _native
from stretto.ipc.retry_timer import RetryTimer
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.polling import wait_until
from tests.support.tasks import expect_new_tasks, tasks

DEADLINE = 30.0


class Attempts:
    """A timer callback that counts its calls and returns the attribute `success`."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.count = 0
        self.success = False
        self.threads: set[int] = set()

    def __call__(self) -> bool:
        with self.changed:
            self.count += 1
            self.threads.add(threading.get_ident())
            self.changed.notify_all()
            return self.success

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.count >= count, DEADLINE)


@pytest.fixture
def attempts() -> Attempts:
    return Attempts()


@contextmanager
def timer_of(attempt: Callable[[], bool]) -> Iterator[RetryTimer]:
    timer = RetryTimer(attempt)
    try:
        yield timer
    finally:
        timer.close()


@pytest.fixture
def timer(attempts: Attempts) -> Iterator[RetryTimer]:
    with timer_of(attempts) as timer:
        yield timer


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the pauses of timers, and let the timers expire at once."""
    set_timer, seen = _native.set_timer_fd, []

    def set_now(fd: int, ms: int) -> None:
        set_timer(fd, 0)
        seen.append(ms)

    monkeypatch.setattr(_native, "set_timer_fd", set_now)
    return seen


def test_first_attempt_runs_at_once_on_another_thread(
    timer: RetryTimer, attempts: Attempts
) -> None:
    timer.start()
    attempts.wait_for(1)
    assert threading.get_ident() not in attempts.threads


def test_pauses_between_attempts_grow_up_to_a_limit(
    timer: RetryTimer, attempts: Attempts, pauses: list[int]
) -> None:
    timer.start()
    attempts.wait_for(9)
    timer.suspend()
    assert pauses[:8] == [0, 100, 200, 400, 800, 1600, 2000, 2000]


def test_successful_attempt_ends_the_thread_of_the_timer(
    timer: RetryTimer, attempts: Attempts
) -> None:
    before = tasks()
    attempts.success = True
    timer.start()
    attempts.wait_for(1)
    expect_new_tasks(before, 0)
    assert attempts.count == 1


def test_pauses_between_attempts_keep_growing_after_a_success_without_reset(
    timer: RetryTimer, attempts: Attempts, pauses: list[int]
) -> None:
    attempts.success = True
    for count in (1, 2, 3):
        timer.start()
        attempts.wait_for(count)
    assert pauses == [0, 100, 200]


def test_reset_makes_the_pause_before_the_next_attempt_short_again(
    timer: RetryTimer, attempts: Attempts, pauses: list[int]
) -> None:
    attempts.success = True
    for count in (1, 2, 3):
        timer.start()
        attempts.wait_for(count)
        timer.reset()
    assert pauses == [0, 100, 100]


def test_start_during_a_successful_attempt_causes_another_attempt() -> None:
    counts = []

    def attempt() -> bool:
        counts.append(1)
        if len(counts) == 1:  # Another thread starts the timer before the first attempt returns.
            other = threading.Thread(target=timer.start)
            other.start()
            others.append(other)
            wait_until(lambda: timer._wanted)
        return True

    others: list[threading.Thread] = []
    with timer_of(attempt) as timer:
        timer.start()
        wait_until(lambda: len(counts) == 2)
        others[0].join()


def test_start_during_attempts_has_no_effect(
    timer: RetryTimer, attempts: Attempts, pauses: list[int]
) -> None:
    timer.suspend()
    timer.start()
    timer.start()
    assert pauses == [0]


def test_no_attempt_runs_while_the_timer_is_suspended(
    timer: RetryTimer, attempts: Attempts
) -> None:
    before = tasks()
    timer.start()
    attempts.wait_for(1)
    timer.suspend()
    expect_new_tasks(before, 0)
    count = attempts.count
    _native.set_timer_fd(timer._fd, 0)
    assert attempts.count == count
    timer.resume()
    attempts.wait_for(count + 1)


def test_start_of_a_suspended_timer_takes_effect_at_resume(
    timer: RetryTimer, attempts: Attempts
) -> None:
    before = tasks()
    timer.suspend()
    timer.start()
    expect_new_tasks(before, 0)
    timer.resume()
    attempts.wait_for(1)


def test_closed_timer_makes_no_further_attempts(attempts: Attempts) -> None:
    gc.collect()
    before, descriptors = tasks(), open_descriptors()
    timer = RetryTimer(attempts)
    timer.start()
    attempts.wait_for(1)
    timer.close()
    timer.close()
    timer.start()
    timer.resume()
    expect_new_tasks(before, 0)
    del timer
    gc.collect()
    expect_new_descriptors(descriptors, 0)


def test_timer_is_recreated_after_its_descriptor_was_closed(
    attempts: Attempts, pauses: list[int]
) -> None:
    closed: list[int] = []

    def attempt() -> bool:
        if not closed:
            closed.append(timer._fd)
            os.close(timer._fd)
        return attempts()

    with timer_of(attempt) as timer:
        timer.start()
        attempts.wait_for(3)
        attempts.success = True
        wait_until(lambda: not timer._wanted)


def test_timer_abandoned_in_a_child_does_not_affect_the_timer_of_the_parent(
    timer: RetryTimer, attempts: Attempts
) -> None:
    timer.start()
    attempts.wait_for(1)
    timer.suspend()
    pid = os.fork()
    if pid == 0:
        before = tasks()  # Earlier tests may leave objects that start threads at the fork.
        timer.abandon()
        timer.start()
        timer.resume()
        os._exit(0 if tasks() <= before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    timer.resume()
    attempts.wait_for(attempts.count + 1)
