"""What the samples of a trace stand for: longer periods weigh more.

A sampler that takes too much CPU time samples less often for a while, and its trace says so in the
defaults of the packets: `timebase.period` (profilers/sampling/slower.py). The weight of a sample is
its period as a multiple of the shortest one in the trace that has the same counter. Where the trace
tells no period, as with a frequency, it is 1. A period of a clock is a time; one of other events,
such as `cycles`, is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from stretto import _native

CLOCKS = frozenset(["cpu-clock", "task-clock", "python.cpu", "python.wall", "python.gil"])
"""Counters whose periods are ns: the kernel's clocks, and those of our own samplers."""


class SampleHits(NamedTuple):
    """Samples of one stack of one thread, with equal weights.

    Attributes:
        utid: The thread.
        callsite: The stack.
        samples: Their number.
        weight: The weight of each; a whole number where the period is a multiple of the shortest.
        counter: What the period is of: the name of the data source, or an event such as `cycles`.
        time_ns: The time that each stands for; 0 if the trace doesn't tell it.
    """

    utid: int
    callsite: int
    samples: int
    weight: float
    counter: str = ""
    time_ns: int = 0


def sample_hits(importer: _native.TraceImporter) -> list[SampleHits]:
    """Return the samples of a trace in the table `perf_sample` that have a stack."""
    rows = importer.sample_hits()
    shortest: dict[str, int] = {}
    for _, _, period, counter, _ in rows:
        if period:
            shortest[counter] = min(period, shortest.get(counter, period))
    return [
        SampleHits(
            utid,
            callsite,
            samples,
            _weight(period, shortest.get(counter, 0)),
            counter,
            period if counter in CLOCKS else 0,
        )
        for utid, callsite, period, counter, samples in rows
    ]


def _weight(period: int, shortest: int) -> float:
    if not period:
        return 1
    return period / shortest if period % shortest else period // shortest
