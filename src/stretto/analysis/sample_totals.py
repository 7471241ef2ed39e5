"""Counts the stack samples of a trace: which functions each thread ran, and how sure that is.

    samples of MainThread    main > load > read        self of `read`, total of all three
                             main > load > read
                             main > parse

    self   of a function: the share of samples in which it is the innermost call
    total  of a function: the share of samples in which it is on the stack

Each data source has shares of its own: `python.wall` takes samples of a thread that waits, and
`python.gil` doesn't. Samples of a longer period weigh more (sample_weights.py).

A share of `n` samples is an estimate. Its error here is half of Wilson's score interval with 95 %
confidence (E. B. Wilson, 1927): z / (1 + z²/n) * sqrt(p (1 - p) / n + z² / 4n²), z = 1.96. It
holds for samples that are independent of each other and of the program's own rhythm. Samples of
different weights tell as much as (sum of weights)² / (sum of their squares) equal ones (L. Kish,
1965).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.sample_weights import sample_hits
from stretto.analysis.stack_names import StackNames
from stretto.analysis.trace_tables import table_rows

if TYPE_CHECKING:
    from stretto import _native
    from stretto.analysis.sample_weights import SampleHits

_Z = 1.96


def sampling_error(hits: float, samples: float) -> float:
    """Return the error of the share `hits / samples`, as a part of 1."""
    if not samples:
        return 0.0
    share, z2 = hits / samples, _Z * _Z
    root = math.sqrt(share * (1 - share) / samples + z2 / (4 * samples * samples))
    return _Z / (1 + z2 / samples) * root


class SampledFunction(NamedTuple):
    """A function in the samples of a thread.

    Attributes:
        name: Its name.
        file: Its file; "" if the trace has none.
        self: The weight of the samples in which it is the innermost call: their number, if all
            samples have the same period.
        total: The weight of the samples in which it is on the stack.
    """

    name: str
    file: str
    self: float
    total: float


class SampledThread(NamedTuple):
    """The samples of a thread from one source.

    Attributes:
        process: The process's name.
        name: The thread's name.
        samples: The number of samples with a stack.
        weight: The weight of all of them.
        equal: The number of samples of equal weight that would tell as much.
        functions: Its functions, by samples in themselves.
        source: What took the samples, such as `python.wall`; an event for those of `linux.perf`.
    """

    process: str
    name: str
    samples: int
    weight: float
    equal: float
    functions: list[SampledFunction]
    source: str

    def error(self, weight: float) -> float:
        """Return the error of a function's share, as a part of 1."""
        return sampling_error(weight / self.weight * self.equal, self.equal)


def sampled_threads(importer: _native.TraceImporter) -> list[SampledThread]:
    """Return the threads with samples, by source; the one with most samples first."""
    by_thread: dict[tuple[int, str], list[SampleHits]] = {}
    for hits in sample_hits(importer):
        by_thread.setdefault((hits.utid, hits.counter), []).append(hits)
    stacks = StackNames(importer)
    threads, processes = table_rows(importer, "thread"), table_rows(importer, "process")
    found = []
    for (utid, _), samples in by_thread.items():
        thread = threads[utid]
        process = processes[thread["upid"]] if thread["upid"] is not None else None
        name = (process["name"] or f"process {process['pid']}") if process else ""
        found.append(_thread(name, thread["name"] or f"thread {thread['tid']}", samples, stacks))
    return sorted(found, key=lambda thread: -thread.weight)


def _thread(
    process: str, name: str, samples: list[SampleHits], stacks: StackNames
) -> SampledThread:
    weight = sum(each.samples * each.weight for each in samples)
    squares = sum(each.samples * each.weight**2 for each in samples)
    number = sum(each.samples for each in samples)
    functions = _functions(samples, stacks)
    return SampledThread(
        process, name, number, weight, weight**2 / squares, functions, samples[0].counter
    )


def _functions(samples: list[SampleHits], stacks: StackNames) -> list[SampledFunction]:
    own: dict[tuple[str, str], float] = {}
    total: dict[tuple[str, str], float] = {}
    for hits in samples:
        functions = stacks.functions(hits.callsite)
        weight = hits.samples * hits.weight
        own[functions[0]] = own.get(functions[0], 0) + weight
        for function in set(functions):
            total[function] = total.get(function, 0) + weight
    rows = [SampledFunction(*key, own.get(key, 0), weight) for key, weight in total.items()]
    return sorted(rows, key=lambda row: (-row.self, -row.total, row.name))
