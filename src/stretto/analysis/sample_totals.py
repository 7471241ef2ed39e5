"""Counts the stack samples of a trace: which functions each thread ran, and how sure that is.

    samples of MainThread    main > load > read        self of `read`, total of all three
                             main > load > read
                             main > parse

    self   of a function: the share of samples in which it is the innermost call
    total  of a function: the share of samples in which it is on the stack

A share of `n` samples is an estimate. Its error here is half of Wilson's score interval with 95 %
confidence (E. B. Wilson, 1927): z / (1 + z²/n) * sqrt(p (1 - p) / n + z² / 4n²), z = 1.96. It
holds for samples that are independent of each other and of the program's own rhythm.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.stack_names import StackNames
from stretto.analysis.trace_tables import table_rows

if TYPE_CHECKING:
    from stretto import _native

_Z = 1.96


def sampling_error(hits: int, samples: int) -> float:
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
        self: The number of samples in which it is the innermost call.
        total: The number of samples in which it is on the stack.
    """

    name: str
    file: str
    self: int
    total: int


class SampledThread(NamedTuple):
    """The samples of a thread.

    Attributes:
        process: The process's name.
        name: The thread's name.
        samples: The number of samples with a stack.
        functions: Its functions, by samples in themselves.
    """

    process: str
    name: str
    samples: int
    functions: list[SampledFunction]


def sampled_threads(importer: _native.TraceImporter) -> list[SampledThread]:
    """Return the threads with samples, the one with most samples first."""
    hits: dict[int, Counter[int]] = {}
    for row in table_rows(importer, "perf_sample"):
        if row["callsite_id"] is not None:
            hits.setdefault(row["utid"], Counter())[row["callsite_id"]] += 1
    stacks = StackNames(importer)
    threads, processes = table_rows(importer, "thread"), table_rows(importer, "process")
    found = []
    for utid, counts in hits.items():
        thread = threads[utid]
        process = processes[thread["upid"]] if thread["upid"] is not None else None
        found.append(
            SampledThread(
                (process["name"] or f"process {process['pid']}") if process else "",
                thread["name"] or f"thread {thread['tid']}",
                counts.total(),
                _functions(counts, stacks),
            )
        )
    return sorted(found, key=lambda thread: -thread.samples)


def _functions(counts: Counter[int], stacks: StackNames) -> list[SampledFunction]:
    own: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    for callsite, number in counts.items():
        functions = stacks.functions(callsite)
        own[functions[0]] += number
        for function in set(functions):
            total[function] += number
    rows = [SampledFunction(*key, own[key], number) for key, number in total.items()]
    return sorted(rows, key=lambda row: (-row.self, -row.total, row.name))
