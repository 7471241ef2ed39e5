"""Samples beyond the budget of CPU time: the trace and the summary tell their period."""

from __future__ import annotations

from typing import Any

import pytest

from stretto.analysis.sample_totals import sampled_threads
from stretto.analysis.trace_tables import import_trace
from stretto.base.notes_tracks import SHORTFALLS, notes_track
from stretto.profilers.sampling.process import PERF_SAMPLE, STACK_SAMPLE, WALL, find_python
from stretto.profilers.sampling.samples import ProcessSamples
from stretto.profilers.sampling.settings import Settings
from stretto.profilers.sampling.slower import slow_text
from stretto.protos.trace import Trace, TracePacket
from tests.support.python_targets import ASLEEP, running

MS = 1_000_000
CLEARED = 1


class SlowSampler:
    """A sampler that says how many periods are between its samples."""

    def __init__(self, sampler: Any) -> None:
        self.factor = 1
        self._sampler = sampler

    def stats(self) -> dict[str, int]:
        return self._sampler.stats() | {"factor": self.factor}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sampler, name)


class SlowProcess:
    """A process with such a sampler."""

    def __init__(self, pid: int) -> None:
        self._process = find_python(pid)

    def sampler(self, *arguments: Any) -> SlowSampler:
        self.made = SlowSampler(self._process.sampler(*arguments))
        return self.made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._process, name)


def drained(samples: ProcessSamples) -> list[TracePacket]:
    samples.run(5 * MS)
    return list(Trace.decode(samples.drain()).packet)


def note_of(packets: list[TracePacket]) -> list[str]:
    events = [packet.track_event for packet in packets if packet.track_event is not None]
    assert all(event.track_uuid == notes_track("python.wall") for event in events)
    # On a busy machine there are notes about late samples, too.
    return [event.name for event in events if SHORTFALLS not in event.categories]


def test_change_of_the_period_is_told_and_later_samples_have_new_defaults() -> None:
    with running(ASLEEP) as program:
        process: Any = SlowProcess(program.pid)
        samples = ProcessSamples(process, Settings(WALL, MS), 7)
        before = drained(samples)
        process.made.factor = 4
        told, after = drained(samples), drained(samples)
        process.made.factor = 1
        told_again, last = drained(samples), drained(samples)
    assert note_of(before) == note_of(after) == note_of(last) == []
    reason = "as the samples took more than a quarter of a CPU"
    pid = program.pid
    assert note_of(told) == [f"process {pid}: sampled every 4 ms, {reason}"]
    assert note_of(told_again) == [f"process {pid}: sampled every 1 ms again"]
    assert samples.longest == 4
    starts = [p for p in before + told + after + told_again + last if p.has("interned_data")]
    defaults = [p for p in starts if p.sequence_flags & CLEARED]
    periods = [p.trace_packet_defaults.perf_sample_defaults.timebase.period for p in defaults]
    assert periods == [MS, 4 * MS, MS]
    assert {packet.trusted_packet_sequence_id for packet in told} == {7}


@pytest.mark.parametrize("form", [PERF_SAMPLE, STACK_SAMPLE])
def test_samples_after_a_change_come_after_their_stacks(form: int) -> None:
    with running(ASLEEP) as program:
        process: Any = SlowProcess(program.pid)
        samples = ProcessSamples(process, Settings(WALL, MS, form=form), 7)
        drained(samples)
        process.made.factor = 2
        drained(samples)
        packets = drained(samples)
    (start,) = (n for n, packet in enumerate(packets) if packet.sequence_flags & CLEARED)
    assert packets[start].interned_data.callstacks
    field = "perf_sample" if form == PERF_SAMPLE else "stack_sample"
    sampled = [n for n, packet in enumerate(packets) if packet.has(field)]
    assert sampled
    assert min(sampled) > start


def test_samples_of_longer_periods_weigh_more_in_summaries_of_the_trace() -> None:
    with running(ASLEEP) as program:
        process: Any = SlowProcess(program.pid)
        samples = ProcessSamples(process, Settings(WALL, MS), 7)
        parts = []
        for factor in (1, 4, 1):
            process.made.factor = factor
            samples.run(20 * MS)
            parts.append(samples.drain())  # The factor holds from here on.
    taken = [sum(p.has("perf_sample") for p in Trace.decode(part).packet) for part in parts]
    assert min(taken) > 0
    (thread,) = sampled_threads(import_trace(b"".join(parts)))
    assert thread.samples == sum(taken)
    assert thread.weight == taken[0] + taken[1] + 4 * taken[2]
    assert {f.name: f.self for f in thread.functions}["Shop.order"] == thread.weight


def test_summary_names_the_longest_period() -> None:
    assert slow_text(Settings(WALL, MS), 1) == ""
    assert slow_text(Settings(WALL, MS), 8) == (
        "sampled less often for a time, down to every 8 ms: "
        "the samples took more than a quarter of a CPU"
    )
