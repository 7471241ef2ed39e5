"""What a PerfEventConfig asks of the kernel."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from stretto.probes.machine import Machine
from stretto.probes.perf_config import PerfError, PerfSettings, settings_of
from stretto.protos.config import FollowerEvent, PerfEventConfig, PerfEvents
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.probing import write_files

Stacks, Timebase = PerfEventConfig.CallstackSampling, PerfEvents.Timebase
STACKS = Stacks(kernel_frames=True)


def settings(root: Path, config: PerfEventConfig | None = None) -> PerfSettings:
    runner = FakeTaskRunner(FakeClock())
    machine = Machine(runner, lambda f: f(), runner.clock, str(root))
    return settings_of(config or PerfEventConfig(), machine)


def test_unset_fields_have_the_defaults_of_traced_perf(tmp_path: Path) -> None:
    found = settings(tmp_path)
    assert found.events == ((1, 0, 0, 0, 0, None),)
    assert (found.frequency, found.period, found.ring_pages) == (10, 0, 256)
    assert (found.clock, found.trace_clock) == (time.CLOCK_MONOTONIC_RAW, 5)
    assert (found.read_period_ms, found.max_samples) == (100, 4)
    assert not found.has_stacks
    timebase = found.defaults.timebase
    assert timebase is not None
    assert (timebase.frequency, timebase.counter) == (10, PerfEvents.SW_CPU_CLOCK)


def test_period_is_a_count_between_samples(tmp_path: Path) -> None:
    timebase = Timebase(period=7, counter=PerfEvents.HW_INSTRUCTIONS)
    found = settings(tmp_path, PerfEventConfig(timebase=timebase, ring_buffer_pages=2))
    assert found.events == ((0, 1, 0, 0, 0, None),)
    assert (found.frequency, found.period, found.max_samples) == (0, 7, 1024)


def test_frequency_that_the_kernel_will_refuse_is_a_valid_setting(tmp_path: Path) -> None:
    found = settings(tmp_path, PerfEventConfig(timebase=Timebase(frequency=10**12)))
    assert (found.frequency, found.max_samples) == (10**12, 2**32 - 1)


def test_polled_counters_have_no_samples(tmp_path: Path) -> None:
    timebase = Timebase(poll_period_ms=50, counter=PerfEvents.SW_CONTEXT_SWITCHES)
    found = settings(tmp_path, PerfEventConfig(timebase=timebase, callstack_sampling=STACKS))
    assert found.is_polled
    assert (found.ring_pages, found.read_period_ms, found.trace_clock) == (0, 50, 6)
    assert (found.frequency, found.period, found.has_stacks) == (0, 0, False)


def test_events_of_tracepoints_pmus_and_modifiers(tmp_path: Path) -> None:
    tracefs = "sys/kernel/tracing"
    write_files(
        tmp_path,
        {
            f"{tracefs}/instances/keep": "",
            f"{tracefs}/events/sched/sched_switch/id": "372\n",
            "sys/bus/event_source/devices/power/type": "22\n",
        },
    )
    point = PerfEvents.Tracepoint(name="sched:sched_switch", filter="prev_pid != 0")
    raw = PerfEvents.RawEvent(pmu_name="power", config=1, config1=2, config2=3)
    config = PerfEventConfig(
        timebase=Timebase(period=1, tracepoint=point),
        followers=[
            FollowerEvent(raw_event=raw),
            FollowerEvent(
                counter=PerfEvents.SW_PAGE_FAULTS,
                modifiers=[PerfEvents.EVENT_MODIFIER_COUNT_USERSPACE],
            ),
        ],
    )
    assert settings(tmp_path, config).events == (
        (2, 372, 0, 0, 0, "prev_pid != 0"),
        (22, 1, 2, 3, 0, None),
        (1, 2, 0, 0, 6, None),
    )


@pytest.mark.parametrize(
    ("mode", "has_frames", "is_unwound"),
    [
        (PerfEventConfig.UNWIND_UNKNOWN, True, True),
        (PerfEventConfig.UNWIND_SKIP, False, False),
        (PerfEventConfig.UNWIND_DWARF, True, True),
        (PerfEventConfig.UNWIND_FRAME_POINTER, True, False),
        (PerfEventConfig.UNWIND_KERNEL_FRAME_POINTER, True, False),
    ],
    ids=str,
)
def test_user_frames_are_unwound_unless_frame_pointers_are_asked_for(
    tmp_path: Path, mode: int, has_frames: bool, is_unwound: bool
) -> None:
    stacks = Stacks(kernel_frames=True, user_frames=mode)
    found = settings(tmp_path, PerfEventConfig(callstack_sampling=stacks))
    assert (found.user_frames, found.user_stack) == (has_frames, is_unwound)


@pytest.mark.parametrize(
    ("mode", "frequency", "asked", "pages"),
    [
        (PerfEventConfig.UNWIND_DWARF, 10, 0, 256),
        (PerfEventConfig.UNWIND_DWARF, 1000, 0, 2048),  # 202 samples of 16 pages: the limit
        (PerfEventConfig.UNWIND_DWARF, 200, 0, 1024),
        (PerfEventConfig.UNWIND_DWARF, 1000, 64, 64),
        (PerfEventConfig.UNWIND_FRAME_POINTER, 1000, 0, 256),
    ],
)
def test_rings_have_room_for_the_stacks_of_a_period(
    tmp_path: Path, mode: int, frequency: int, asked: int, pages: int
) -> None:
    config = PerfEventConfig(
        timebase=Timebase(frequency=frequency),
        callstack_sampling=Stacks(user_frames=mode),
        ring_buffer_pages=asked,
    )
    assert settings(tmp_path, config).ring_pages == pages


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (PerfEventConfig(callstack_sampling=Stacks(user_frames=1)), "neither"),
        (PerfEventConfig(ring_buffer_pages=3), "power of two"),
        (PerfEventConfig(ring_buffer_pages=1 << 20), "at most"),
        (PerfEventConfig(timebase=Timebase(counter=99)), "no counter 99"),
        (
            PerfEventConfig(timebase=Timebase(tracepoint=PerfEvents.Tracepoint(name="x"))),
            "group/name",
        ),
        (
            PerfEventConfig(timebase=Timebase(tracepoint=PerfEvents.Tracepoint(name="a/b"))),
            "tracefs is not mounted",
        ),
        (
            PerfEventConfig(timebase=Timebase(raw_event=PerfEvents.RawEvent(pmu_name="../x"))),
            "no counters",
        ),
    ],
    ids=["no frames", "pages", "many pages", "counter", "form", "tracefs", "pmu"],
)
def test_config_that_cannot_be_followed_is_refused(
    tmp_path: Path, config: PerfEventConfig, reason: str
) -> None:
    with pytest.raises(PerfError, match=reason):
        settings(tmp_path, config)
