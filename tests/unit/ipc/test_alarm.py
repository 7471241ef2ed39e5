from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from stretto.ipc.alarm import Alarm
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.tasks import expect_new_tasks, tasks

DEADLINE = 30.0
NEVER_MS = 3_600_000


class Rings:
    """An alarm callback that counts its calls and returns the given delays."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.threads: list[int] = []
        self.answers: list[float | None] = []

    def __call__(self) -> float | None:
        with self.changed:
            self.threads.append(threading.get_ident())
            self.changed.notify_all()
            return self.answers.pop(0) if self.answers else None

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.threads) >= count, DEADLINE)


@pytest.fixture
def rings() -> Rings:
    return Rings()


@pytest.fixture
def alarm(rings: Rings) -> Iterator[Alarm]:
    alarm = Alarm(rings)
    yield alarm
    alarm.close()


@pytest.fixture
def before() -> set[str]:
    return tasks()


def test_alarm_callback_runs_once_on_the_thread_of_the_alarm(
    alarm: Alarm, rings: Rings, before: set[str]
) -> None:
    alarm.set(1)
    rings.wait_for(1)
    alarm.suspend()  # `suspend` joins the alarm's thread.
    expect_new_tasks(before, 0)
    assert rings.threads[0] != threading.get_ident()
    assert len(rings.threads) == 1


def test_returned_delay_sets_the_alarm_again(alarm: Alarm, rings: Rings) -> None:
    rings.answers = [1, 0, 2]
    alarm.set(0)
    rings.wait_for(4)


def test_second_call_of_set_replaces_the_time_of_the_alarm(alarm: Alarm, rings: Rings) -> None:
    alarm.set(NEVER_MS)
    alarm.set(1)
    rings.wait_for(1)
    alarm.set(1)
    rings.wait_for(2)


def test_callback_may_set_the_alarm() -> None:
    rings = Rings()

    def ring() -> float | None:
        if rings() is None and len(rings.threads) < 3:
            alarm.set(1)
        return None

    alarm = Alarm(ring)
    try:
        alarm.set(1)
        rings.wait_for(3)
    finally:
        alarm.close()


def test_suspended_alarm_has_no_thread(alarm: Alarm, rings: Rings, before: set[str]) -> None:
    alarm.set(NEVER_MS)
    expect_new_tasks(before, 1)
    alarm.suspend()
    expect_new_tasks(before, 0)
    alarm.resume()
    expect_new_tasks(before, 1)
    alarm.suspend()
    alarm.set(1)
    expect_new_tasks(before, 0)
    assert rings.threads == []
    alarm.resume()
    rings.wait_for(1)


def test_alarm_works_after_the_program_has_closed_all_descriptors(
    alarm: Alarm, rings: Rings
) -> None:
    alarm.set(NEVER_MS)
    alarm.suspend()
    os.close(alarm._fd)
    alarm.resume()
    alarm.set(1)
    rings.wait_for(1)


def test_closed_alarm_leaves_no_thread_and_no_descriptor(rings: Rings, before: set[str]) -> None:
    descriptors = open_descriptors()
    alarm = Alarm(rings)
    alarm.set(NEVER_MS)
    alarm.close()
    alarm.close()
    del alarm
    expect_new_tasks(before, 0)
    expect_new_descriptors(descriptors, 0)
    assert rings.threads == []
