"""The verb `query`: runs SQL on a trace."""

from __future__ import annotations

import csv
import io
import json
import sys
import tempfile
from functools import partial
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.analysis.open_packets import STANDARD_INPUT
from stretto.analysis.query_result import different_names
from stretto.analysis.questions import QUESTIONS, no_answer, query_of
from stretto.analysis.raw_tables import names_raw_table
from stretto.analysis.sql.errors import QueryError
from stretto.analysis.trace_processor import DUCKDB, ENGINES, SQLITE, TraceProcessor
from stretto.base.errors import CommandError
from stretto.base.printable import printable
from stretto.cli.question_table import answer_table
from stretto.cli.text_table import aligned, as_table
from stretto.cli.trace_reading import reading, warn_of_damage
from stretto.cli.verb_parser import VerbParser, flag, port_number
from stretto.viewer.access import LOOPBACK
from stretto.viewer.peer_user import TELLS_USERS, allowed_users
from stretto.viewer.trace_site import PORT

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stretto.analysis.query_result import QueryResult
    from stretto.cli.text_table import Rows

DESCRIPTION = """\
Run PerfettoSQL on a trace (pip install 'stretto[analysis]', or --engine sqlite), or ask a question
by name.

  stretto query trace.pftrace "select name, count(*), sum(dur) from slice group by name"
  stretto query trace.pftrace --format csv "select ts, value from counters" > counters.csv
  stretto query trace.pftrace --format parquet "select * from slice" > slices.parquet
  stretto query trace.pftrace - < question.sql
  stretto query trace.pftrace --ask p99 --slice 'handle*'
  stretto query --serve trace.pftrace
  stretto query --list

Tables: slice, thread_track, process_track, track, counter, counter_track, counters, thread,
process, args, flow, android_logs, clock_snapshot, metadata, stats, trace_bounds. Times are ns.
Answers to --ask have units in tables; in csv, json and parquet their times are ns, too.
"show tables" lists all, "describe slice" the columns of one, "show modules" the modules.
"""


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = VerbParser("query", DESCRIPTION)
    parser.add_argument(
        "trace", metavar="TRACE", nargs="?", help="may be gzipped; - is standard input"
    )
    parser.add_argument(
        "sql", metavar="SQL", nargs="?", help="the statements; - reads standard input"
    )
    parser.add_argument("--format", choices=("table", "csv", "json", "parquet"), default="table")
    parser.add_argument("--ask", metavar="QUESTION", choices=QUESTIONS, help="answer this question")
    parser.add_argument("--slice", metavar="NAME", help="the question's slice, or a pattern")
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        help="duckdb (default), or sqlite: Python's own, whose version may be older than the trace "
        "processor's (select sqlite_version()); --ask takes sqlite where duckdb isn't installed",
    )
    flag(parser, "--serve", "answer the clients of Perfetto's trace processor, until Ctrl-C")
    parser.add_argument(
        "--port", type=port_number, default=PORT, help=f"with --serve (default: {PORT})"
    )
    flag(parser, "--list", "show the questions, and exit")
    parsed = parser.parse_intermixed_args(arguments)
    if parsed.serve and (parsed.sql or parsed.ask):
        parser.error("--serve takes only a trace")
    if not parsed.list and not parsed.serve:
        _check(parser, parsed)
    return parsed


def _check(parser: VerbParser, parsed: argparse.Namespace) -> None:
    if parsed.trace is None or (parsed.sql is None) == (parsed.ask is None):
        parser.error("give a trace, and either SQL or --ask")
    if parsed.format == "parquet" and sys.stdout.isatty():
        parser.error("Parquet is binary: redirect the output to a file")
    if parsed.trace == parsed.sql == "-":
        parser.error("standard input can be the trace or the SQL, not both")
    needs_slice = parsed.ask is not None and QUESTIONS[parsed.ask].needs_slice
    if needs_slice != (parsed.slice is not None):
        parser.error(
            f"--ask {parsed.ask} needs --slice"
            if needs_slice
            else "--slice goes with questions about a slice"
        )


def _engine(given: argparse.Namespace) -> str:
    """Return the engine. The questions have the same answers with both."""
    installed = all(find_spec(name) for name in ("duckdb", "sqlglot"))
    default = DUCKDB if installed or given.ask is None else SQLITE
    return given.engine or default


def _statements(given: argparse.Namespace) -> str:
    if given.ask is not None:
        return query_of(given.ask, given.slice or "")
    return _standard_input() if given.sql == "-" else str(given.sql)


def _standard_input() -> str:
    """Return the text on standard input. Bytes that are not UTF-8 are left to the query's check."""
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def _list_questions() -> None:
    lines = [
        (f"--ask {name}" + (" --slice NAME" if question.needs_slice else ""), question.text)
        for name, question in QUESTIONS.items()
    ]
    print(aligned(lines), end="")


def as_csv(columns: Sequence[str], rows: Rows) -> str:
    """Format rows as CSV with a header; NULL is empty, blobs are hexadecimal texts."""
    out = io.StringIO()
    values = ([each.hex() if isinstance(each, bytes) else each for each in row] for row in rows)
    csv.writer(out, lineterminator="\n").writerows([columns, *values])
    return out.getvalue()


def as_json(columns: Sequence[str], rows: Rows) -> str:
    """Format rows as a list of objects.

    A column with the name of an earlier one is `name_1`. Blobs are hexadecimal texts; numbers that
    JSON doesn't have are the texts `inf`, `-inf` and `nan`.
    """
    names = different_names(columns)
    objects = [dict(zip(names, map(_json_value, row), strict=True)) for row in rows]
    return json.dumps(objects, indent=1, default=str, ensure_ascii=False, allow_nan=False) + "\n"


def _json_value(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def as_parquet(result: QueryResult) -> bytes:
    """Return the rows as a Parquet file."""
    with tempfile.TemporaryDirectory(prefix="stretto-") as folder:
        path = Path(folder) / "rows.parquet"
        result.parquet(path)
        return path.read_bytes()


_OPEN_TO_ALL = (
    "other users of this machine can query the trace, too: only Linux tells who connects."
)
_FORMATS = {"table": as_table, "csv": as_csv, "json": as_json}


def _serve(given: argparse.Namespace) -> int:
    import stretto
    from stretto.analysis.rpc.service import RpcService
    from stretto.viewer.query_server import QueryServer, QuerySite

    trace = given.trace or ""
    load = partial(TraceProcessor, engine=_engine(given))
    with QueryServer(given.port, allowed_users(())) as server:
        version = f"Stretto {stretto.__version__}"
        service = RpcService(load, trace or b"", name=trace, version=version)
        print(f"http://{LOOPBACK}:{server.port}", flush=True)
        if not TELLS_USERS:
            print(f"stretto: {_OPEN_TO_ALL}", file=sys.stderr)
        print("stretto: Ctrl-C ends.", file=sys.stderr)
        try:
            server.serve(QuerySite(service.answer, server.port))
        except KeyboardInterrupt:
            pass
        finally:
            service.close()
    return 0


def run(arguments: Sequence[str]) -> int:
    """Run `stretto query`.

    Raises:
        CommandError: The trace can't be read, the SQL is wrong, or a package is missing.
        TransportError: The port of --serve is taken.
    """
    given = _parse(arguments)
    if given.list:
        _list_questions()
        return 0
    try:
        with reading("query", given.trace or ""):
            if given.serve:
                return _serve(given)
            answer = _answer(given)
    except QueryError as error:
        raise CommandError(f"query: {error}") from error
    if isinstance(answer, str):
        print(answer, end="")
    else:
        sys.stdout.buffer.write(answer)
    return 0


def _answer(given: argparse.Namespace) -> str | bytes:
    sql = _statements(given)
    # What comes from standard input can't be read again.
    raw = True if given.trace == STANDARD_INPUT and names_raw_table(sql) else None
    with TraceProcessor(given.trace, engine=_engine(given), raw_events=raw) as trace:
        warn_of_damage("query", given.trace, trace.damage)
        _warn_without_answer(trace, given)
        result = trace.query(sql)
        if given.format == "parquet":
            return as_parquet(result)
        is_shown = given.ask is not None and given.format == "table"
        form = answer_table if is_shown else _FORMATS[given.format]
        return form(result.columns, result.fetchall())


def _warn_without_answer(trace: TraceProcessor, given: argparse.Namespace) -> None:
    warning = no_answer(trace, given.ask, given.slice or "") if given.ask else ""
    if warning and sys.stderr is not None:
        print(f"stretto: query: {given.trace!r}: {printable(warning)}", file=sys.stderr)
