"""SelectorTaskRunner runs tasks in order, wakes for other threads and watches descriptors."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from stretto.base import selector_task_runner
from stretto.base.selector_task_runner import SelectorTaskRunner


@pytest.fixture
def runner() -> Iterator[SelectorTaskRunner]:
    runner = SelectorTaskRunner()
    yield runner
    runner.close()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read_fd, write_fd = os.pipe2(os.O_NONBLOCK)
    yield read_fd, write_fd
    os.close(read_fd)
    os.close(write_fd)


class TestPostedTasks:
    def test_tasks_run_in_the_order_of_posting(self, runner: SelectorTaskRunner) -> None:
        seen: list[int] = []
        for number in range(5):
            runner.post(lambda number=number: seen.append(number))
        runner.post(runner.quit)
        runner.run()
        assert seen == [0, 1, 2, 3, 4]

    def test_task_posted_by_a_task_runs_in_the_next_round(self, runner: SelectorTaskRunner) -> None:
        seen: list[str] = []
        runner.post(lambda: (seen.append("first"), runner.post(lambda: seen.append("third"))))
        runner.post(lambda: seen.append("second"))
        assert runner.run_until(lambda: len(seen) == 3, timeout_ms=5000)
        assert seen == ["first", "second", "third"]

    def test_descriptors_are_served_while_a_task_reposts_itself(
        self, runner: SelectorTaskRunner, pipe: tuple[int, int]
    ) -> None:
        seen: list[bytes] = []

        def again() -> None:
            runner.post(again)

        runner.post(again)
        runner.watch(pipe[0], lambda: seen.append(os.read(pipe[0], 1)))
        os.write(pipe[1], b"x")
        assert runner.run_until(lambda: bool(seen), timeout_ms=5000)

    def test_exception_of_a_task_is_raised_and_later_tasks_run(
        self, runner: SelectorTaskRunner
    ) -> None:
        seen: list[str] = []

        def fail() -> None:
            raise RuntimeError("task")

        runner.post(fail)
        runner.post(lambda: seen.append("next"))
        runner.post(runner.quit)
        with pytest.raises(RuntimeError, match="task"):
            runner.run()
        runner.run()
        assert seen == ["next"]

    def test_post_from_another_thread_wakes_the_runner(self, runner: SelectorTaskRunner) -> None:
        seen: list[int] = []
        ready = threading.Event()

        def other() -> None:
            ready.wait()
            runner.post(lambda: seen.append(threading.get_ident()))
            runner.post(runner.quit)

        thread = threading.Thread(target=other)
        thread.start()
        runner.post(ready.set)
        runner.run()
        thread.join()
        assert seen == [threading.get_ident()]

    def test_signal_handler_may_quit_the_runner(self, runner: SelectorTaskRunner) -> None:
        before = signal.signal(signal.SIGUSR1, lambda *_: runner.quit())
        try:
            runner.post(lambda: os.kill(os.getpid(), signal.SIGUSR1))
            runner.run()
        finally:
            signal.signal(signal.SIGUSR1, before)

    def test_quit_before_run_ends_the_run_at_once(self, runner: SelectorTaskRunner) -> None:
        runner.quit()
        runner.run()


class TestDelayedTasks:
    def test_delayed_tasks_run_in_the_order_of_their_delays(
        self, runner: SelectorTaskRunner
    ) -> None:
        seen: list[str] = []
        runner.post_delayed(lambda: seen.append("late"), 2)
        runner.post_delayed(lambda: seen.append("soon"), 1)
        runner.post_delayed(lambda: seen.append("now"), 0)
        assert runner.run_until(lambda: len(seen) == 3, timeout_ms=5000)
        assert seen == ["now", "soon", "late"]

    def test_cancelled_task_does_not_run(self, runner: SelectorTaskRunner) -> None:
        seen: list[str] = []
        token = runner.post_delayed(lambda: seen.append("cancelled"), 0)
        runner.post_delayed(lambda: seen.append("kept"), 1)
        runner.cancel(token)
        assert runner.run_until(lambda: bool(seen), timeout_ms=5000)
        runner.cancel(token)
        assert seen == ["kept"]

    def test_run_until_times_out(self, runner: SelectorTaskRunner) -> None:
        assert not runner.run_until(lambda: False, timeout_ms=1)

    def test_timeout_does_not_wait_for_a_later_task(self, runner: SelectorTaskRunner) -> None:
        runner.post_delayed(lambda: pytest.fail("it was not due"), 3_600_000)
        assert not runner.run_until(lambda: False, timeout_ms=1)


class TestWatchedDescriptors:
    def test_callback_of_a_readable_descriptor_is_called(
        self, runner: SelectorTaskRunner, pipe: tuple[int, int]
    ) -> None:
        seen: list[bytes] = []
        runner.watch(pipe[0], lambda: seen.append(os.read(pipe[0], 10)))
        os.write(pipe[1], b"abc")
        assert runner.run_until(lambda: bool(seen), timeout_ms=5000)
        assert seen == [b"abc"]

    def test_callback_of_a_writable_descriptor_is_called_until_its_watch_is_replaced(
        self, runner: SelectorTaskRunner, pipe: tuple[int, int]
    ) -> None:
        seen: list[str] = []

        def written() -> None:
            seen.append("writable")
            runner.watch(pipe[1], None, None)

        runner.watch(pipe[1], None, written)
        assert runner.run_until(lambda: bool(seen), timeout_ms=5000)
        assert not runner.run_until(lambda: len(seen) > 1, timeout_ms=1)

    def test_descriptor_at_end_of_file_is_readable(
        self, runner: SelectorTaskRunner, pipe: tuple[int, int]
    ) -> None:
        seen: list[bytes] = []

        def at_end() -> None:
            seen.append(os.read(pipe[0], 1))
            runner.unwatch(pipe[0])

        runner.watch(pipe[0], at_end)
        copy = os.dup(pipe[1])
        os.dup2(os.open(os.devnull, os.O_WRONLY), pipe[1])
        os.close(copy)
        assert runner.run_until(lambda: bool(seen), timeout_ms=5000)
        assert seen == [b""]

    def test_callback_may_unwatch_another_ready_descriptor(
        self, runner: SelectorTaskRunner
    ) -> None:
        seen: list[int] = []
        pipes = [os.pipe() for _ in range(2)]

        def callback(mine: int, other: int) -> Callable[[], None]:
            def on_readable() -> None:
                seen.append(mine)
                runner.unwatch(mine)
                runner.unwatch(other)

            return on_readable

        (one, _), (two, _) = pipes
        runner.watch(one, callback(one, two))
        runner.watch(two, callback(two, one))
        for _, write_fd in pipes:
            os.write(write_fd, b"x")
        assert not runner.run_until(lambda: len(seen) > 1, timeout_ms=5)
        assert len(seen) == 1
        for ends in pipes:
            for fd in ends:
                os.close(fd)

    def test_unwatching_an_unwatched_descriptor_does_nothing(
        self, runner: SelectorTaskRunner
    ) -> None:
        runner.unwatch(0)


class TestTimeSlices:
    """Each round of the runner ends after one callback or task, because SLICE_NS is 0."""

    @pytest.fixture(autouse=True)
    def no_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(selector_task_runner, "SLICE_NS", 0)

    @pytest.fixture
    def pipes(self) -> Iterator[list[tuple[int, int]]]:
        pipes = [os.pipe() for _ in range(4)]
        for _, write_fd in pipes:
            os.write(write_fd, bytes(100))
        yield pipes
        for ends in pipes:
            for fd in ends:
                os.close(fd)

    def test_ready_descriptors_are_served_equally_often(
        self, runner: SelectorTaskRunner, pipes: list[tuple[int, int]]
    ) -> None:
        seen: list[int] = []
        for fd, _ in pipes:
            runner.watch(fd, lambda fd=fd: (os.read(fd, 1), seen.append(fd)))
        runner.run_until(lambda: len(seen) >= 40, timeout_ms=60_000)
        assert {seen.count(fd) for fd, _ in pipes} == {10}

    def test_urgent_descriptor_is_served_in_each_round(
        self, runner: SelectorTaskRunner, pipes: list[tuple[int, int]]
    ) -> None:
        seen: list[int] = []
        urgent = pipes[-1][0]
        for fd, _ in pipes:
            runner.watch(fd, lambda fd=fd: (os.read(fd, 1), seen.append(fd)), urgent=fd == urgent)
        runner.run_until(lambda: len(seen) >= 40, timeout_ms=60_000)
        assert seen[::2] == [urgent] * 20

    def test_urgent_descriptor_is_served_between_two_tasks(
        self, runner: SelectorTaskRunner, pipes: list[tuple[int, int]]
    ) -> None:
        seen: list[object] = []
        (fd, _), *_ = pipes
        runner.watch(fd, lambda: seen.append(os.read(fd, 1)), urgent=True)
        for number in range(3):
            runner.post(lambda number=number: seen.append(number))
        runner.run_until(lambda: len(seen) >= 6, timeout_ms=60_000)
        assert seen == [b"\0", 0, b"\0", 1, b"\0", 2]

    def test_descriptor_unwatched_before_its_turn_is_not_served(
        self, runner: SelectorTaskRunner, pipes: list[tuple[int, int]]
    ) -> None:
        seen: list[int] = []

        def serve(fd: int) -> None:
            seen.append(fd)
            for each, _ in pipes:
                runner.unwatch(each)

        for fd, _ in pipes:
            runner.watch(fd, lambda fd=fd: serve(fd))
        assert not runner.run_until(lambda: len(seen) > 1, timeout_ms=20)
        assert len(seen) == 1


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_runner_opens_descriptors_when_it_watches_one(pipe: tuple[int, int]) -> None:
    before = open_descriptors()
    runner = SelectorTaskRunner()
    runner.post_delayed(runner.quit, 0)
    runner.run()
    runner.unwatch(pipe[0])
    assert open_descriptors() == before
    runner.watch(pipe[0], lambda: None)
    assert open_descriptors() == before + 2
    runner.close()
    assert open_descriptors() == before


def test_a_watching_runner_is_woken_by_another_thread(
    runner: SelectorTaskRunner, pipe: tuple[int, int]
) -> None:
    runner.watch(pipe[0], lambda: None)
    thread = threading.Thread(target=runner.post, args=[runner.quit])
    runner.post(thread.start)
    runner.run()
    thread.join()


def test_a_descriptor_that_a_task_is_the_first_to_watch_is_served(
    runner: SelectorTaskRunner, pipe: tuple[int, int]
) -> None:
    def serve() -> None:
        os.read(pipe[0], 1)
        runner.quit()

    runner.post(lambda: runner.watch(pipe[0], serve))
    writer = threading.Thread(target=os.write, args=[pipe[1], b"x"])
    runner.post(writer.start)
    runner.run()
    writer.join()
