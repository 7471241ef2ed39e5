"""The page of `stretto summary --html`: one file with bar charts, without scripts or links."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.trace_summary import Times
from stretto.cli.record.detail_lines import time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto.analysis.io_waits import IoWait
    from stretto.analysis.off_cpu import OffCpu
    from stretto.analysis.trace_summary import Summary

_STYLE = """
body { font: 18px/1.45 system-ui, sans-serif; color: #1b1f24; background: #fff;
  max-width: 76rem; margin: 2rem auto; padding: 0 1.5rem }
h1 { font-size: 2rem; overflow-wrap: anywhere }
h2 { font-size: 1.4rem; margin: 2.5rem 0 .2rem }
p, pre { margin: .2rem 0 1rem; color: #57606a }
pre { white-space: pre-wrap }
table { border-collapse: collapse; width: 100%; table-layout: fixed }
td { padding: .25rem .5rem; vertical-align: middle }
tr + tr td { border-top: 1px solid #eaeef2 }
.name { width: 42%; overflow-wrap: anywhere }
.time { width: 15%; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.more { color: #57606a; font-size: .85em }
.bar { position: relative; height: 1.3rem; background: #f2f4f7; border-radius: 3px }
.bar i { position: absolute; inset: 0 auto 0 0; border-radius: 3px }
.wide { background: #a8c7ee } .main { background: #1f6feb }
"""


class Chart(NamedTuple):
    """A chart: for each row a bar, and a wider one behind it.

    Attributes:
        title: The heading.
        legend: What the two bars are.
        rows: The rows, of which the first ones are shown.
        main: The time of the bar.
        wide: The time of the bar behind it.
    """

    title: str
    legend: str
    rows: Sequence[Times]
    main: Callable[[Times], int]
    wide: Callable[[Times], int]


def _charts(found: Summary) -> list[Chart]:
    return [
        Chart(
            "Own functions",
            "dark: self time; light: with the functions that they call",
            found.own_functions,
            lambda t: t.self,
            lambda t: t.total,
        ),
        Chart(
            "Coroutines",
            "from begin to end; dark: without the coroutines that they await; light: with them",
            found.coroutines,
            lambda t: t.self,
            lambda t: t.total,
        ),
        Chart(
            "Functions",
            "dark: self time; light: with the functions that they call",
            found.functions,
            lambda t: t.self,
            lambda t: t.total,
        ),
        Chart(
            "Slices of other categories",
            "dark: the 50th percentile of the duration; light: the 99th",
            sorted(found.slices, key=lambda t: -t.p99),
            lambda t: t.p50,
            lambda t: t.p99,
        ),
        Chart(
            "Categories",
            "dark: self time; light: with the slices inside",
            found.categories,
            lambda t: t.self,
            lambda t: t.total,
        ),
        Chart(
            "Threads and other lanes",
            "dark: time on a CPU, if the trace has it; light: time in slices",
            found.lanes,
            lambda t: t.cpu,
            lambda t: t.total,
        ),
        Chart(
            "Waiting for the GIL",
            "dark: the longest wait; light: all waits of the thread",
            found.gil_waits,
            lambda t: t.max,
            lambda t: t.total,
        ),
        Chart(
            "Waiting for files, peers and timers",
            "the call, what it waited for, and the process; dark: the longest wait; light: all",
            [_io_times(wait) for wait in found.io_waits],
            lambda t: t.max,
            lambda t: t.total,
        ),
        Chart(
            "Off the CPU",
            "the innermost calls of the thread, the thread, and why; dark: the longest; light: all",
            [_off_cpu_times(row) for row in found.off_cpu],
            lambda t: t.max,
            lambda t: t.total,
        ),
    ]


def _io_times(wait: IoWait) -> Times:
    name = f"{wait.call} {wait.target}".rstrip()
    return Times(wait.process, name, wait.number, wait.total, 0, 0, 0, 0, wait.max, 0)


def _off_cpu_times(row: OffCpu) -> Times:
    # The row has no percentiles, and the chart shows none.
    whose = f"{row.thread}: {row.reason}"
    return Times(whose, row.where(), row.number, row.total, 0, 0, 0, 0, row.longest, 0)


def as_page(title: str, facts: str, found: Summary, limit: int) -> str:
    """Return the page.

    Args:
        title: The name of the trace.
        facts: What the trace holds and what was lost, as text.
        found: The times.
        limit: The largest number of rows of a chart.
    """
    charts = "".join(_chart(chart, limit) for chart in _charts(found))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n<pre>{escape(facts)}</pre>\n{charts}</body></html>\n"
    )


def _chart(chart: Chart, limit: int) -> str:
    longest = max((max(chart.wide(row), chart.main(row)) for row in chart.rows), default=0)
    if not longest:
        return ""
    rows = "".join(_row(chart, row, longest) for row in chart.rows[:limit])
    left = len(chart.rows) - limit
    more = f'<p class="more">and {left} more</p>\n' if left > 0 else ""
    return (
        f"<h2>{escape(chart.title)}</h2><p>{escape(chart.legend)}</p>\n"
        f"<table>{rows}</table>\n{more}"
    )


def _row(chart: Chart, row: Times, longest: int) -> str:
    main, wide = chart.main(row), chart.wide(row)
    bars = "".join(
        f'<i class="{kind}" style="width:{100 * value / longest:.2f}%"></i>'
        for kind, value in (("wide", wide), ("main", main))
    )
    name = _printable(row.name or row.category)
    detail = f"×{row.number:,}"
    if row.cpu and chart.main(row) != row.cpu:
        detail += f", on a CPU {time_text(row.cpu)}"
    if row.p99:
        detail += f", p50 {time_text(row.p50)}, p99 {time_text(row.p99)}"
    if row.name and row.category:
        detail += f" {_printable(row.category)}"
    return (
        f'<tr><td class="name">{escape(name)} <span class="more">{escape(detail)}</span></td>'
        f'<td class="time">{time_text(main)}</td><td><div class="bar">{bars}</div></td>'
        f'<td class="time">{time_text(wide)}</td></tr>\n'
    )


def _printable(text: str) -> str:
    """Replace the characters of a text that a page must not contain."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
