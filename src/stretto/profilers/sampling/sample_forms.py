"""The two forms of samples in a trace, and what differs in their packet sequences.

    PERF_SAMPLE     `PerfSample`, which all versions of Perfetto read
    STACK_SAMPLE    `StackSample`, for Perfetto v58 and later (stack_sample.proto): it names its
                    source, and what a sample stands for

The samples themselves are written by native/probes/sample_packet.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.profilers.sampling.process import CPU, GIL, PERF_SAMPLE, WALL
from stretto.profilers.sampling.settings import SOURCES
from stretto.protos.config import PerfEvents
from stretto.protos.trace import (
    PerfSample,
    PerfSampleDefaults,
    StackSample,
    StackSampleDefaults,
    TracePacket,
    TracePacketDefaults,
)

if TYPE_CHECKING:
    from stretto.profilers.sampling.settings import Settings

_COUNTERS = {CPU: "cpu-time", WALL: "wall-time", GIL: "gil-time"}
_TORN = "the stack changed at each attempt to read it"


def defaults_of(settings: Settings, clock_id: int) -> TracePacketDefaults:
    """Return the defaults of a sequence of samples.

    Args:
        settings: The settings of the profile.
        clock_id: The clock of the samples' timestamps.
    """
    if settings.form == PERF_SAMPLE:
        timebase = PerfEvents.Timebase(
            period=settings.period_ns,
            counter=PerfEvents.Counter.SW_CPU_CLOCK,
            name=SOURCES[settings.mode],  # Tells the samples of several sources apart.
        )
        return TracePacketDefaults(
            timestamp_clock_id=clock_id,
            perf_sample_defaults=PerfSampleDefaults(timebase=timebase),
        )
    counter = StackSample.CounterDescriptor(
        name=_COUNTERS[settings.mode], unit=StackSample.Unit.UNIT_NANOSECONDS
    )
    return TracePacketDefaults(
        timestamp_clock_id=clock_id,
        stack_sample_defaults=StackSampleDefaults(
            source=SOURCES[settings.mode], primary_descriptor=counter
        ),
    )


def torn_sample(settings: Settings, pid: int) -> TracePacket:
    """Return a packet without a time, for a sample whose stack could not be read."""
    if settings.form == PERF_SAMPLE:
        reason = PerfSample.SampleSkipReason.PROFILER_SKIP_UNWIND_STAGE
        return TracePacket(perf_sample=PerfSample(pid=pid, tid=pid, sample_skipped_reason=reason))
    return TracePacket(
        stack_sample=StackSample(
            task_context=StackSample.TaskContext(pid=pid, tid=pid),
            unwind_error=_TORN,
            primary_weight=settings.period_ns,
        )
    )
