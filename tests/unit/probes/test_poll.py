from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.probes.machine import Machine
from stretto.probes.poll import Poll
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner

START_MS = 1234


class Samples:
    """A poll, and the time of each of its samples."""

    def __init__(self, **periods_ms: int) -> None:
        self.runner = FakeTaskRunner(FakeClock(boottime_ns=START_MS * 1_000_000))
        self.machine = Machine(self.runner, lambda f: f(), self.runner.clock)
        self.taken: list[tuple[int, str]] = []
        self.poll = Poll(self.machine, periods_ms, self.sample)

    def sample(self, due: Iterable[str]) -> None:
        now_ms = self.machine.now_ns() // 1_000_000
        self.taken.append((now_ms, " ".join(due)))


def test_first_sample_has_everything_and_the_next_ones_are_at_multiples_of_the_periods() -> None:
    samples = Samples(stat=100, psi=250)
    samples.runner.advance(300)
    assert samples.taken == [
        (1234, "stat psi"),
        (1250, "psi"),
        (1300, "stat"),
        (1400, "stat"),
        (1500, "stat psi"),
    ]


def test_periods_need_no_common_divisor() -> None:
    samples = Samples(stat=30, psi=70)
    samples.runner.advance(100)
    assert samples.taken[1:] == [(1260, "stat psi"), (1290, "stat"), (1320, "stat"), (1330, "psi")]


def test_missed_samples_are_left_out() -> None:
    samples = Samples(stat=10)
    samples.runner.clock.advance_ms(1000)
    samples.runner.run_until_idle()
    assert samples.taken == [(1234, "stat"), (2234, "stat")]


def test_stopped_poll_takes_no_sample() -> None:
    samples = Samples(stat=10)
    samples.poll.stop()
    samples.runner.advance(100)
    assert len(samples.taken) == 1
    assert samples.runner.delayed_count == 0


def test_poll_of_nothing_plans_no_task() -> None:
    samples = Samples()
    assert not samples.taken
    assert samples.runner.delayed_count == 0
    samples.poll.stop()


def test_poll_continues_after_an_exception() -> None:
    samples = Samples(stat=10)

    def fail(due: Iterable[str]) -> None:
        raise OSError(*due)

    samples.poll._sample = fail
    for _ in range(2):
        with pytest.raises(OSError, match="stat"):
            samples.runner.advance(10)


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(10, 500), min_size=1))
def test_each_thing_is_sampled_at_every_multiple_of_its_period(periods: dict[str, int]) -> None:
    samples = Samples(**periods)
    samples.runner.advance(1000)
    for name, period in periods.items():
        times = [time for time, due in samples.taken[1:] if name in due.split()]
        assert times == [
            time for time in range(START_MS + 1, START_MS + 1001) if time % period == 0
        ]


def test_unreadable_files_folders_and_links_are_empty(tmp_path: Path) -> None:
    machine = Machine(FakeTaskRunner(), lambda f: f(), FakeClock(), str(tmp_path))
    (tmp_path / "folder").mkdir()
    assert machine.read("missing") == machine.read("folder") == b""
    assert machine.names("missing") == machine.all_names("missing") == []
    assert machine.link("missing") == machine.link("folder") == ""


def test_numbered_names_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    machine = Machine(FakeTaskRunner(), lambda f: f(), FakeClock(), str(tmp_path))
    for name in ("cpu10", "cpu2", "cpu", "cpufreq", "xcpu3", "7"):
        (tmp_path / name).mkdir()
    assert machine.names("", "cpu") == ["cpu2", "cpu10"]
    assert machine.names("") == ["7"]


def test_long_file_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * 200_000)
    machine = Machine(FakeTaskRunner(), lambda f: f(), FakeClock(), str(tmp_path))
    assert len(machine.read("long")) == 200_000
