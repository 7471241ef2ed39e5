"""The verb `summary`: shows what a trace holds, what was slow, and what was lost."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.analysis.trace_summary import LOOPS, summarize
from stretto.analysis.trace_tables import damage, import_trace, is_empty, table_columns, table_rows
from stretto.base.printable import printable
from stretto.cli.heap_tables import heaps_as_text, heaps_as_values
from stretto.cli.object_tables import objects_as_text, objects_as_values
from stretto.cli.output_file import STANDARD, open_output
from stretto.cli.record.detail_lines import time_text
from stretto.cli.record.summary import kept_text, losses, summary
from stretto.cli.sample_tables import samples_as_text, samples_as_values
from stretto.cli.summary_page import as_page
from stretto.cli.text_table import as_table
from stretto.cli.trace_reading import reading, warn_of_damage
from stretto.cli.verb_parser import VerbParser
from stretto.cli.wait_tables import waits_as_text
from stretto.protos.trace import TraceStats
from stretto.recorder.host.contents import Contents

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from stretto import _native
    from stretto.analysis.off_cpu import OffCpu
    from stretto.analysis.trace_summary import Summary, Times
    from stretto.analysis.unexpected_tests import UnexpectedTest

DESCRIPTION = """\
Show what a trace holds, what was slow, and what was lost. Needs no other package.

  stretto summary trace.pftrace
  stretto summary --limit 30 trace.pftrace
  stretto summary --format json trace.pftrace
  stretto summary --html summary.html trace.pftrace

Functions and slices are those in the trace: calls that auto detail left out are part of the self
time of their caller.
"""

COROUTINES = "Coroutines of tasks, from begin to end, with their waits"
_LIMIT = 10
_PAGE_LIMIT = 25
_OTHERS = {
    "sample": ("perf_sample", "cpu_profile_stack_sample"),
    "scheduling slice": ("__intrinsic_sched_slice",),
    "counter value": ("counter",),
}
"""What isn't an event of a track, and the tables that have it."""
_STATS = {
    "bytes_overwritten": "traced_buf_bytes_overwritten",
    "trace_writer_packet_loss": "traced_buf_trace_writer_packet_loss",
    "chunks_discarded": "traced_buf_chunks_discarded",
    "abi_violations": "traced_buf_abi_violations",
}
"""Fields of the statistics of buffers that tell of losses, with their names in the trace."""


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = VerbParser("summary", DESCRIPTION)
    parser.add_argument("trace", metavar="TRACE", help="may be gzipped; - is standard input")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument(
        "--html", metavar="FILE", help="write a page with charts to this file, instead of the text"
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=int,
        help=f"lines per table (default: {_LIMIT}; --html: {_PAGE_LIMIT}; json: all)",
    )
    parsed = parser.parse_args(arguments)
    if parsed.limit is not None and parsed.limit < 0:
        parser.error("--limit must be at least 0")
    return parsed


class _Counter:
    """Counts what a trace contains, as `stretto record` does. The trace arrives in pieces."""

    def __init__(self) -> None:
        self.contents = Contents()
        self._rest = b""

    def add(self, piece: bytes) -> None:
        data = self._rest + piece
        self._rest = data[self.contents.add(data, inflate=False) :]

    def inflate(self, data: bytes) -> bytes:
        inflated = zlib.decompress(data)
        self.contents.add(inflated)
        return inflated


def _read(path: str) -> tuple[Contents, Summary]:
    counter = _Counter()
    with reading("summary", path):
        importer = import_trace(path, counter.add, counter.inflate)
    found = summarize(importer)
    if not importer.has_packets():
        _count_rows(counter.contents, found, importer)
    elif damage(importer):
        _count_after_damage(counter.contents, found, importer)
    if not counter.contents.processes:
        _count_kernel_rows(counter.contents, importer)
    # What else is unread is among the facts.
    warn_of_damage("summary", path, is_empty(importer))
    return counter.contents, found


def _count_rows(contents: Contents, found: Summary, importer: _native.TraceImporter) -> None:
    """Count the slices, processes and threads of a trace without packets."""
    contents.events += sum(times.number for times in found.categories)
    pids = dict(table_columns(importer, "process", "upid", "pid"))
    for upid, tid, is_idle in table_columns(importer, "thread", "upid", "tid", "is_idle"):
        if not is_idle and upid is not None:
            contents.processes.add(pids[upid])
            contents.threads.add((pids[upid], tid))


def _count_kernel_rows(contents: Contents, importer: _native.TraceImporter) -> None:
    """Count what a trace without descriptors of processes has: samples, scheduling, counters.

    A parent that only its child names isn't counted.
    """
    contents.others = [
        (sum(1 for table in tables for _ in table_columns(importer, table, "id")), noun)
        for noun, tables in _OTHERS.items()
    ]
    processes = {row["upid"]: row for row in table_rows(importer, "process")}
    for row in table_rows(importer, "thread"):
        process = processes.get(row["upid"], {})
        if not row["is_idle"] and (row["name"] or process.get("name")):
            contents.threads.add((process.get("pid", 0), row["tid"]))
            if process:
                contents.processes.add(process["pid"])


def _count_after_damage(
    contents: Contents, found: Summary, importer: _native.TraceImporter
) -> None:
    """Count the rows, if these are more: the importer also reads what follows the damage."""
    slices = sum(times.number for times in found.categories)
    values = sum(1 for _ in table_columns(importer, "counter", "id"))
    contents.events = max(contents.events, slices + values)


def _trace_stats(found: Summary) -> TraceStats:
    values = {field: found.statistics.get(name, 0) for field, name in _STATS.items()}
    return TraceStats(buffer_stats=[TraceStats.BufferStats(**values)])


def _kept(contents: Contents, found: Summary) -> str:
    if found.recorded_ns is None:
        return ""
    started, disabled = found.recorded_ns
    return kept_text(contents.first_ns, disabled, (disabled - started) / 1e9)


def _unread(found: Summary) -> list[str]:
    return [f"{text}: {count:,}" for count, text in found.unread]


def _cpu(times: Times) -> str:
    return time_text(times.cpu) if times.cpu else "-"


def _named(rows: list[Times]) -> dict[str, Callable[[Times], object]]:
    """Return the columns of a table of slices, with the CPU time if the trace has it."""
    columns = {**_TIMES, "name": lambda t: t.name}
    if not any(times.cpu for times in rows):
        return columns
    return {"self": _TIMES["self"], "total": _TIMES["total"], "cpu": _cpu} | columns


def _lane_columns(lanes: list[Times]) -> dict[str, Callable[[Times], object]]:
    """Return the columns of the table of lanes; times of threads if the trace has some."""
    columns: dict[str, Callable[[Times], object]] = {
        "busy": lambda t: time_text(t.total),
        "cpu": _cpu,
    }
    if any(times.thread for times in lanes):
        columns |= {
            "ran": lambda t: time_text(t.thread.running) if t.thread else "-",
            "waited for a CPU": _ready,
            "blocked": lambda t: time_text(t.thread.blocked) if t.thread else "-",
        }
    return columns | {
        "slices": lambda t: t.number,
        "lane": lambda t: t.name,
        "process": lambda t: t.category,
    }


def _ready(times: Times) -> str:
    ready = times.thread.ready if times.thread else None
    return "-" if ready is None else time_text(ready)


def _table(
    title: str, rows: list[Times], limit: int, columns: dict[str, Callable[[Times], object]]
) -> str:
    if not rows:
        return ""
    shown = [tuple(column(row) for column in columns.values()) for row in rows[:limit]]
    more = f"and {len(rows) - limit} more\n" if len(rows) > limit else ""
    return f"\n{title}\n\n{as_table(list(columns), shown, _NUMBERS)}{more}"


_TIMES: dict[str, Callable[[Times], object]] = {
    "self": lambda t: time_text(t.self),
    "total": lambda t: time_text(t.total),
    "count": lambda t: t.number,
    "p50": lambda t: time_text(t.p50),
    "p90": lambda t: time_text(t.p90),
    "p99": lambda t: time_text(t.p99),
    "max": lambda t: time_text(t.max),
}
_GIL_COLUMNS: dict[str, Callable[[Times], object]] = {
    "time": _TIMES["total"],
    **{name: _TIMES[name] for name in ("count", "p50", "p99", "max")},
    "thread": lambda t: t.name,
    "process": lambda t: t.category,
}
_NUMBERS = {*_TIMES, "time", "busy", "cpu", "ran", "waited for a CPU", "blocked"}


def _blocked(found: Summary) -> list[str]:
    """Return a line about callbacks that blocked event loops (`stretto record --waits`)."""
    blocked = [times for times in found.slices if times.category == LOOPS]
    if not blocked:
        return []
    count, longest = sum(times.number for times in blocked), max(blocked, key=lambda t: t.max)
    where = longest.name.removeprefix("blocked in ")
    times_text = "once" if count == 1 else f"{count:,} times"
    return [f"event loop: blocked {times_text}, longest {time_text(longest.max)} in {where}"]


def _losses(contents: Contents, found: Summary) -> list[str]:
    """Return a line for each reason of missing data in the trace."""
    streamed = bool(found.statistics.get("stretto_write_into_file"))
    kept = _kept(contents, found)
    lost = losses(contents, _trace_stats(found), kept, streamed=streamed)
    return lost + found.losses + found.not_followed


def _facts(contents: Contents, found: Summary) -> str:
    streamed = bool(found.statistics.get("stretto_write_into_file"))
    nothing = not _losses(contents, found) and not found.unread
    lines = [
        summary(
            contents,
            _trace_stats(found),
            found.not_followed,
            _kept(contents, found),
            streamed=streamed,
            lost=found.losses,
        ),
        f"  time: {found.seconds:.3f} s from the first to the last event",
        *(f"  {line}" for line in _blocked(found)),
        *(f"  unread: {line}" for line in _unread(found)),
        *(["  lost: nothing, as far as the trace tells"] if nothing else []),
    ]
    return "\n".join(lines) + "\n"


def _by_language(functions: list[Times]) -> tuple[list[Times], list[Times]]:
    """Return the functions in Python and those in C, which have no source file.

    In a trace without source files they can't be told apart: all are in the first list.
    """
    python = [times for times in functions if times.file]
    if not python:
        return functions, []
    return python, [times for times in functions if not times.file]


def _as_text(contents: Contents, found: Summary, limit: int) -> str:
    python, in_c = _by_language(found.functions)
    by_total = sorted(python, key=lambda times: -times.total)
    named = _named(found.functions)
    coroutine = {**_TIMES, "name": lambda t: t.name}
    of_category = {"category": lambda t: t.category}
    return _facts(contents, found) + "".join(
        [
            _table("Own functions", found.own_functions, limit, named),
            _table(COROUTINES, found.coroutines, limit, coroutine),
            _table("Functions by self time", python, limit, named),
            _table("Functions by total time", by_total, limit, named),
            _table("C functions, waits among them", in_c, limit, named),
            _table(
                "Slices of other categories",
                found.slices,
                limit,
                {**_named(found.slices), **of_category},
            ),
            _table("Categories", found.categories, limit, {**_TIMES, **of_category}),
            _table("Lanes", found.lanes, limit, _lane_columns(found.lanes)),
            _table("Waiting for the GIL", found.gil_waits, limit, _GIL_COLUMNS),
            waits_as_text(found.io_waits, limit),
            _off_cpu(found.off_cpu, limit),
            samples_as_text(found.samples, limit),
            heaps_as_text(found.heaps, limit),
            objects_as_text(found.objects, limit),
            _tests(found.tests, limit),
        ]
    )


def _off_cpu(rows: list[OffCpu], limit: int) -> str:
    """Return the table of where threads were off the CPU."""
    if not rows:
        return ""
    shown = [
        (
            time_text(row.total),
            row.number,
            time_text(row.longest),
            row.reason,
            row.thread,
            row.where(),
        )
        for row in rows[:limit]
    ]
    more = f"and {len(rows) - limit} more\n" if len(rows) > limit else ""
    names = ["time", "count", "max", "why", "thread", "in"]
    return f"\nOff the CPU\n\n{as_table(names, shown, {'time', 'count', 'max'})}{more}"


def _tests(tests: list[UnexpectedTest], limit: int) -> str:
    """Return a line for each test that did not pass, and one for the end of the run."""
    lines = []
    for test in tests[:limit]:
        cause = f"fixture {test.fixture}: " if test.fixture else ""
        message = test.message.partition("\n")[0]
        error = f"{cause}{test.exception}: {message}" if test.exception else cause
        parts = (test.outcome, test.test, error)
        lines.append("  " + printable("  ".join(part for part in parts if part)))
    if not lines:
        return ""
    more = f"and {len(tests) - limit} more\n" if len(tests) > limit else ""
    return "\nTests that did not pass\n\n" + "\n".join(lines) + "\n" + more


def _objects(rows: list[Times], limit: int | None) -> list[dict[str, object]]:
    return [
        {key: value for key, value in row._asdict().items() if key != "thread"}
        | {"cpu": row.cpu or None}
        for row in rows[:limit]
    ]


def _as_json(contents: Contents, found: Summary, limit: int | None) -> str:
    lanes = [
        {
            "process": t.category,
            "lane": t.name,
            "busy": t.total,
            "cpu": t.cpu or None,
            "slices": t.number,
        }
        | ({"thread": t.thread._asdict()} if t.thread else {})
        for t in found.lanes[:limit]
    ]
    value = {
        "events": contents.events,
        "processes": len(contents.processes),
        "threads": len(contents.threads),
        "seconds": found.seconds,
        "losses": _losses(contents, found),
        "blocked": _blocked(found),
        "unread": _unread(found),
        "own_functions": _objects(found.own_functions, limit),
        "functions": _objects(found.functions, limit),
        "coroutines": _objects(found.coroutines, limit),
        "slices": _objects(found.slices, limit),
        "categories": _objects(found.categories, limit),
        "lanes": lanes,
        "gil_waits": [
            {"process": t.category, "thread": t.name, "total": t.total, "count": t.number}
            | {"p50": t.p50, "p90": t.p90, "p99": t.p99, "max": t.max}
            for t in found.gil_waits[:limit]
        ],
        "io_waits": [row._asdict() for row in found.io_waits[:limit]],
        "off_cpu": [row._asdict() for row in found.off_cpu[:limit]],
        "samples": samples_as_values(found.samples, limit),
        "heaps": heaps_as_values(found.heaps, limit),
        "objects": objects_as_values(found.objects, limit),
        "tests": [test._asdict() for test in found.tests[:limit]],
    }
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _write_page(path: str, page: str, source: os.stat_result | None) -> None:
    with open_output("summary", path, binary=False, source=source) as out:
        # Names in a trace may have lone surrogates.
        out.write(page.encode("utf-8", errors="replace"))


def run(arguments: Sequence[str]) -> int:
    """Run `stretto summary`.

    Raises:
        CommandError: The trace can't be read, or the page can't be written.
    """
    given = _parse(arguments)
    contents, found = _read(given.trace)
    if given.html is not None:
        title = "standard input" if given.trace == STANDARD else Path(given.trace).name
        limit = _PAGE_LIMIT if given.limit is None else given.limit
        source = None if given.trace == STANDARD else os.stat(given.trace)
        facts = _facts(contents, found) + _tests(found.tests, limit)
        _write_page(given.html, as_page(title, facts, found, limit), source)
    if given.format == "json":
        print(_as_json(contents, found, given.limit), end="")
    elif given.html is None:
        limit = _LIMIT if given.limit is None else given.limit
        print(_as_text(contents, found, limit), end="")
    return 0
