"""The page of `stretto summary --html`: one file with bar charts, without scripts or links."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.trace_summary import Times
from stretto.cli.heap_tables import heap_charts
from stretto.cli.object_tables import object_charts
from stretto.cli.record.detail_lines import time_text
from stretto.cli.sample_tables import sample_charts
from stretto.cli.summary_chart import Bar, Chart

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


class _Times(NamedTuple):
    """A chart of times; its attributes are those of a `Chart`, but for the rows.

    Attributes:
        title: The heading.
        legend: What the two bars are.
        rows: The rows.
        main: The time of a row's bar.
        wide: The time of the bar behind it.
    """

    title: str
    legend: str
    rows: Sequence[Times]
    main: Callable[[Times], int]
    wide: Callable[[Times], int]


def _times(found: Summary) -> list[_Times]:
    return [
        _Times(
            "Own functions",
            "dark: self time; light: with the functions that they call",
            found.own_functions,
            lambda t: t.self,
            lambda t: t.total,
        ),
        _Times(
            "Coroutines",
            "from begin to end; dark: without the coroutines that they await; light: with them",
            found.coroutines,
            lambda t: t.self,
            lambda t: t.total,
        ),
        _Times(
            "Functions",
            "dark: self time; light: with the functions that they call",
            found.functions,
            lambda t: t.self,
            lambda t: t.total,
        ),
        _Times(
            "Slices of other categories",
            "dark: the 50th percentile of the duration; light: the 99th",
            sorted(found.slices, key=lambda t: -t.p99),
            lambda t: t.p50,
            lambda t: t.p99,
        ),
        _Times(
            "Categories",
            "dark: self time; light: with the slices inside",
            found.categories,
            lambda t: t.self,
            lambda t: t.total,
        ),
        _Times(
            "Threads and other lanes",
            "dark: time on a CPU, if the trace has it; light: time in slices",
            found.lanes,
            lambda t: t.cpu,
            lambda t: t.total,
        ),
        _Times(
            "Waiting for the GIL",
            "dark: the longest wait; light: all waits of the thread",
            found.gil_waits,
            lambda t: t.max,
            lambda t: t.total,
        ),
        _Times(
            "Waiting for files, peers and timers",
            "the call, what it waited for, and the process; dark: the longest wait; light: all",
            [_io_times(wait) for wait in found.io_waits],
            lambda t: t.max,
            lambda t: t.total,
        ),
        _Times(
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
        found: The times, samples and memory.
        limit: The largest number of rows of a chart.
    """
    charts = [
        *(_chart_of(times) for times in _times(found)),
        *sample_charts(found.samples, limit),
        *heap_charts(found.heaps, limit),
        *object_charts(found.objects, limit),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n<pre>{escape(facts)}</pre>\n"
        f"{''.join(_chart(chart, limit) for chart in charts)}</body></html>\n"
    )


def _chart_of(times: _Times) -> Chart:
    bars = [_bar(times, row) for row in times.rows]
    return Chart(times.title, times.legend, bars)


def _bar(times: _Times, row: Times) -> Bar:
    main, wide = times.main(row), times.wide(row)
    name = row.name or row.category
    detail = f"×{row.number:,}"
    if row.cpu and main != row.cpu:
        detail += f", on a CPU {time_text(row.cpu)}"
    if row.p99:
        detail += f", p50 {time_text(row.p50)}, p99 {time_text(row.p99)}"
    if row.name and row.category:
        detail += f" {row.category}"
    return Bar(name, detail, main, wide, time_text(main), time_text(wide))


def _chart(chart: Chart, limit: int) -> str:
    longest = max((max(bar.wide, bar.main) for bar in chart.bars), default=0)
    if not longest and not chart.below:
        return ""
    rows = "".join(_row(bar, longest) for bar in chart.bars[:limit])
    left = len(chart.bars) - limit
    more = f'<p class="more">and {left} more</p>\n' if left > 0 else ""
    below = f"<p>{escape(chart.below)}</p>\n" if chart.below else ""
    return (
        f"<h2>{escape(_printable(chart.title))}</h2><p>{escape(chart.legend)}</p>\n"
        f"<table>{rows}</table>\n{more}{below}"
    )


def _row(bar: Bar, longest: float) -> str:
    bars = "".join(
        f'<i class="{kind}" style="width:{100 * value / longest:.2f}%"></i>'
        for kind, value in (("wide", bar.wide), ("main", bar.main))
    )
    name, detail = escape(_printable(bar.name)), escape(_printable(bar.detail))
    return (
        f'<tr><td class="name">{name} <span class="more">{detail}</span></td>'
        f'<td class="time">{bar.main_text}</td><td><div class="bar">{bars}</div></td>'
        f'<td class="time">{bar.wide_text}</td></tr>\n'
    )


def _printable(text: str) -> str:
    """Replace the characters of a text that a page must not contain."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
