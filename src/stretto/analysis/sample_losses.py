"""What a trace lacks: samples of stacks, C functions in them, and events of the kernel."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stretto.analysis.trace_tables import table_columns
from stretto.base.notes_tracks import NUMBER, SHORTFALLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stretto import _native

_STATISTICS = {
    "perf_samples_skipped": "samples are missing: their stacks could not be read",
    "perf_samples_skipped_dataloss": "samples are missing: there were too many at once",
    "perf_cpu_lost_records": "records of samples are missing: the kernel's buffer was full",
}
"""What statistics of the importer count."""


def sample_losses(
    importer: _native.TraceImporter, statistics: Mapping[str, int], *, has_events: bool
) -> list[str]:
    """Return a line for each reason, with the number of samples or events.

    Args:
        importer: The imported trace.
        statistics: Its statistics.
        has_events: Whether the trace has events of the category SHORTFALLS. Looking for them
            reads all slices in Python.
    """
    numbers = {text: statistics.get(name, 0) for name, text in _STATISTICS.items()}
    if has_events:
        numbers |= _told_by_events(importer)
    found = [f"{number:,} {text}" for text, number in numbers.items() if number]
    return found + _of_the_kernel(statistics)


def _of_the_kernel(statistics: Mapping[str, int]) -> list[str]:
    if not (cpus := statistics.get("ftrace_cpu_has_data_loss", 0)):
        return []
    number = statistics.get("ftrace_cpu_overrun_delta", 0)
    lost = f"{number:,} events" if number else f"events of {cpus} CPUs" if cpus > 1 else "events"
    wrong = "of the kernel are missing, and states of threads are wrong there"
    return [f"{lost} {wrong}: its buffer was full (`buffer_size_kb`, `drain_period_ms`)"]


def _told_by_events(importer: _native.TraceImporter) -> Counter[str]:
    slices = table_columns(importer, "slice", "category", "name", "arg_set_id")
    # Events with equal arguments share a set of them.
    events = Counter((name, set_id) for category, name, set_id in slices if category == SHORTFALLS)
    arguments = table_columns(importer, "__intrinsic_args", "arg_set_id", "key", "int_value")
    values = {set_id: value for set_id, key, value in arguments if key == f"debug.{NUMBER}"}
    numbers: Counter[str] = Counter()
    for (name, set_id), count in events.items():
        numbers[name] += values.get(set_id, 0) * count
    return numbers
