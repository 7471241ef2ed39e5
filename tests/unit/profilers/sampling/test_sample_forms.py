"""The defaults of a sequence of samples, and a sample without a stack, in both forms."""

from __future__ import annotations

import pytest

from stretto.profilers.sampling.process import CPU, GIL, PERF_SAMPLE, STACK_SAMPLE, WALL
from stretto.profilers.sampling.sample_forms import defaults_of, torn_sample
from stretto.profilers.sampling.settings import Settings
from stretto.protos.trace import PerfSample, StackSample


def test_perf_samples_have_the_period_as_timebase() -> None:
    defaults = defaults_of(Settings(CPU, 1000), 64)
    assert defaults.timestamp_clock_id == 64
    assert defaults.perf_sample_defaults is not None
    assert defaults.perf_sample_defaults.timebase is not None
    assert defaults.perf_sample_defaults.timebase.period == 1000
    assert defaults.perf_sample_defaults.timebase.name == "python.cpu"
    assert defaults.stack_sample_defaults is None


@pytest.mark.parametrize(
    ("mode", "source", "counter"),
    [
        (CPU, "python.cpu", "cpu-time"),
        (WALL, "python.wall", "wall-time"),
        (GIL, "python.gil", "gil-time"),
    ],
)
def test_stack_samples_name_their_source(mode: int, source: str, counter: str) -> None:
    defaults = defaults_of(Settings(mode, 1000, form=STACK_SAMPLE), 64)
    assert defaults.perf_sample_defaults is None
    assert defaults.stack_sample_defaults is not None
    assert defaults.stack_sample_defaults.source == source
    descriptor = defaults.stack_sample_defaults.primary_descriptor
    assert descriptor is not None
    assert (descriptor.name, descriptor.unit) == (counter, StackSample.Unit.UNIT_NANOSECONDS)


def test_torn_sample_says_why_it_has_no_stack() -> None:
    old = torn_sample(Settings(CPU, 1000, form=PERF_SAMPLE), 7).perf_sample
    assert old is not None
    assert old.sample_skipped_reason == PerfSample.SampleSkipReason.PROFILER_SKIP_UNWIND_STAGE
    new = torn_sample(Settings(CPU, 1000, form=STACK_SAMPLE), 7).stack_sample
    assert new is not None
    assert new.unwind_error == "the stack changed at each attempt to read it"
    assert new.primary_weight == 1000
    assert not new.callstack_iid
