"""Shows the stack samples of a trace: a table for each thread and source, or values for JSON."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.cli.record.summary import and_more, plural
from stretto.cli.summary_chart import Bar, Chart, with_rest
from stretto.cli.text_table import as_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.analysis.sample_totals import SampledFunction, SampledThread

_HEAD = """
Stack samples

Shares of a thread's samples: "self" in the function itself, "total" with what it calls. The errors
are those of sampling, with 95 % confidence.
"""


def samples_as_text(threads: Sequence[SampledThread], limit: int) -> str:
    """Return the tables; "" without samples.

    Args:
        threads: The threads, the one with most samples first.
        limit: The largest number of threads, and of lines of a table.
    """
    if not threads:
        return ""
    has_sources = len({thread.source for thread in threads}) > 1
    tables = [_table(thread, limit, has_sources=has_sources) for thread in threads[:limit]]
    rest = and_more(len(threads), limit, "thread")
    return _HEAD + "".join(tables) + (f"\n{rest}" if rest else "")


def _table(thread: SampledThread, limit: int, *, has_sources: bool) -> str:
    rows = [
        (_share(each.self, thread), _share(each.total, thread), _label(each))
        for each in thread.functions[:limit]
    ]
    return (
        f"\n{_heading(thread, has_sources=has_sources)}\n\n"
        + as_table(["self", "total", "function"], rows, {"self", "total"})
        + and_more(len(thread.functions), limit, "function")
    )


def _heading(thread: SampledThread, *, has_sources: bool) -> str:
    of = f" of {thread.process}" if thread.process else ""
    by = f" by {thread.source}" if has_sources and thread.source else ""
    return f"{thread.name}{of}: {_number(thread)}{by}"


def sample_charts(threads: Sequence[SampledThread], limit: int) -> list[Chart]:
    """Return a chart for each of the first threads, up to a limit."""
    has_sources = len({thread.source for thread in threads}) > 1
    charts = [
        Chart(
            f"Stack samples of {_heading(thread, has_sources=has_sources)}",
            "dark: the share of the function itself; light: with what it calls; the errors are "
            "those of sampling, with 95 % confidence",
            [_bar(each, thread) for each in thread.functions],
        )
        for thread in threads[:limit]
    ]
    return with_rest(charts, and_more(len(threads), limit, "thread"))


def _bar(each: SampledFunction, thread: SampledThread) -> Bar:
    file = os.path.basename(each.file)
    shares = _share(each.self, thread), _share(each.total, thread)
    return Bar(each.name, file, each.self, each.total, *shares)


def _number(thread: SampledThread) -> str:
    text = plural(thread.samples, "sample")
    if thread.weight == thread.samples:
        return text
    return f"{text}, which count as {thread.weight:,.0f}: some have longer periods"


def _label(function: SampledFunction) -> str:
    file = os.path.basename(function.file)
    return f"{function.name} ({file})" if file else function.name


def _share(weight: float, thread: SampledThread) -> str:
    if not weight:
        return "-"
    return f"{100 * weight / thread.weight:.1f} ±{100 * thread.error(weight):.1f} %"


def samples_as_values(
    threads: Sequence[SampledThread], limit: int | None
) -> list[dict[str, object]]:
    """Return the samples for JSON: their weights, and errors as parts of 1."""
    return [
        {
            "process": thread.process,
            "thread": thread.name,
            "source": thread.source,
            "samples": thread.samples,
            "weight": thread.weight,
            "functions": [_value(each, thread) for each in thread.functions[:limit]],
        }
        for thread in threads[:limit]
    ]


def _value(function: SampledFunction, thread: SampledThread) -> dict[str, object]:
    return function._asdict() | {
        "self_error": thread.error(function.self),
        "total_error": thread.error(function.total),
    }
