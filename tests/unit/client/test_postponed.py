"""Work that is postponed in the child of a fork is done once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from stretto.client import postponed


@pytest.fixture(autouse=True)
def never_due(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(postponed, "LONGEST_MS", 1 << 30)
    yield
    postponed.cancel()


def test_work_is_done_once() -> None:
    done: list[bool] = []
    postponed.postpone(lambda: done.append(postponed.is_waiting()))
    postponed.run()
    postponed.run()
    assert done == [True]
    assert not postponed.is_waiting()


def test_work_that_calls_run_itself_is_done_once() -> None:
    done: list[int] = []

    def work() -> None:
        done.append(1)
        postponed.run()

    postponed.postpone(work)
    postponed.run()
    assert done == [1]


def test_failed_work_is_not_repeated() -> None:
    postponed.postpone(lambda: int("x"))
    with pytest.raises(ValueError, match="invalid literal"):
        postponed.run()
    postponed.run()


def test_cancelled_work_is_not_done() -> None:
    done: list[int] = []
    postponed.postpone(lambda: done.append(1))
    assert postponed.cancel()
    assert not postponed.cancel()
    postponed.run()
    assert not done


def test_thread_of_cancelled_work_is_left_until_the_next_fork(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postponed, "LONGEST_MS", 600_000)  # Not before it is cancelled.
    postponed.suspend()  # Ends the thread of an earlier test.
    threads = len(os.listdir("/proc/self/task"))
    postponed.postpone(lambda: None)
    assert postponed.cancel()
    assert len(os.listdir("/proc/self/task")) == threads + 1
    postponed.suspend()  # What is called before a fork.
    assert len(os.listdir("/proc/self/task")) == threads


def test_another_thread_waits_for_the_end_of_the_work() -> None:
    begun, may_end, order = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        may_end.wait(60)
        order.append("work")

    def other() -> None:
        postponed.run()
        order.append("other")

    postponed.postpone(work)
    threads = [threading.Thread(target=postponed.run), threading.Thread(target=other)]
    threads[0].start()
    begun.wait(60)
    threads[1].start()
    may_end.set()
    for thread in threads:
        thread.join()
    assert order == ["work", "other"]


def test_work_is_done_on_another_thread_after_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postponed, "LONGEST_MS", 0)
    done = threading.Event()
    postponed.postpone(done.set)
    assert done.wait(60)
    assert not postponed.cancel()


def test_timeout_starts_again_after_a_suspension(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()
    postponed.postpone(done.set)
    postponed.suspend()
    assert not done.is_set()
    monkeypatch.setattr(postponed, "LONGEST_MS", 0)
    postponed.resume()
    assert done.wait(60)
