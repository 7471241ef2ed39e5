"""FakeTaskRunner and FakeClock: tasks run in a fixed order without waiting."""

from __future__ import annotations

import os

import pytest

from stretto.testing import fake_task_runner
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner


class TestPostedTasks:
    def test_tasks_run_only_when_the_test_runs_them(self) -> None:
        runner = FakeTaskRunner()
        runner.post(lambda: pytest.fail("nobody ran it"))

    def test_run_until_idle_runs_tasks_posted_by_tasks(self) -> None:
        runner, seen = FakeTaskRunner(), list[str]()
        runner.post(lambda: (seen.append("one"), runner.post(lambda: seen.append("two"))))
        runner.run_until_idle()
        assert seen == ["one", "two"]

    def test_endless_loop_of_tasks_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fake_task_runner, "MAX_STEPS", 10)
        runner = FakeTaskRunner()

        def again() -> None:
            runner.post(again)

        runner.post(again)
        with pytest.raises(AssertionError, match="endless loop"):
            runner.run_until_idle()


class TestDelayedTasks:
    def test_clock_shows_the_time_of_each_task(self) -> None:
        clock = FakeClock(boottime_ns=0)
        runner, seen = FakeTaskRunner(clock), list[tuple[str, int]]()
        runner.post_delayed(lambda: seen.append(("b", clock.boottime_ns())), 20)
        runner.post_delayed(lambda: seen.append(("a", clock.boottime_ns())), 10)
        runner.post_delayed(lambda: seen.append(("never", clock.boottime_ns())), 31)
        runner.advance(30)
        assert seen == [("a", 10_000_000), ("b", 20_000_000)]
        assert clock.boottime_ns() == 30_000_000
        assert runner.delayed_count == 1

    def test_advance_runs_delayed_tasks_posted_by_tasks(self) -> None:
        runner, seen = FakeTaskRunner(), list[int]()

        def tick() -> None:
            seen.append(runner.clock.boottime_ns())
            runner.post_delayed(tick, 10)

        runner.post_delayed(tick, 10)
        runner.advance(35)
        assert len(seen) == 3

    def test_tasks_due_at_the_same_time_run_in_the_order_of_posting(self) -> None:
        runner, seen = FakeTaskRunner(), list[int]()
        for number in range(5):
            runner.post_delayed(lambda number=number: seen.append(number), 5)
        runner.advance(5)
        assert seen == [0, 1, 2, 3, 4]

    def test_cancelled_task_does_not_run(self) -> None:
        runner = FakeTaskRunner()
        runner.cancel(runner.post_delayed(lambda: pytest.fail("it was cancelled"), 5))
        assert runner.delayed_count == 0
        runner.advance(10)


class TestWatchedDescriptors:
    def test_descriptors_are_served_after_the_tasks_posted_so_far(self) -> None:
        runner, seen = FakeTaskRunner(), list[str]()
        read_fd, write_fd = os.pipe()
        runner.watch(read_fd, lambda: seen.append(os.read(read_fd, 1).decode()))
        os.write(write_fd, b"x")
        runner.post(lambda: (seen.append("task"), runner.post(lambda: seen.append("later"))))
        runner.run_until_idle()
        assert seen == ["task", "x", "later"]
        assert runner.watched == {read_fd}
        runner.watch(read_fd, None)
        assert not runner.watched
        os.close(read_fd)
        os.close(write_fd)


class TestFakeClock:
    def test_advance_moves_all_clocks_equally(self) -> None:
        clock = FakeClock(boottime_ns=5, walltime_ns=1000)
        clock.advance_ms(1)
        assert (clock.boottime_ns(), clock.walltime_ns()) == (1_000_005, 1_001_000)
        assert dict(clock.snapshot()) == {
            6: 1_000_005, 2: 1_001_000, 4: 1_000_005, 1: 1_001_000, 3: 1_000_005, 5: 1_000_005,
        }  # fmt: skip

    def test_wall_clock_can_be_stepped(self) -> None:
        clock = FakeClock(boottime_ns=5, walltime_ns=1000)
        clock.step_walltime_ns(-100)
        assert (clock.boottime_ns(), clock.walltime_ns()) == (5, 900)

    def test_clock_cannot_go_back(self) -> None:
        with pytest.raises(ValueError, match="forward"):
            FakeClock().advance_ns(-1)
