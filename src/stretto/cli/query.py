"""The verb `query`: runs SQL on a trace."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import TYPE_CHECKING

from stretto.analysis.sql.errors import QueryError
from stretto.analysis.trace_processor import TraceProcessor
from stretto.base.errors import CommandError, DecodeError
from stretto.cli.text_table import as_table
from stretto.cli.verb_parser import VerbParser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stretto.cli.text_table import Rows

DESCRIPTION = """\
Run SQL on a trace: Perfetto's tables, in DuckDB's dialect (pip install 'stretto[analysis]').

  stretto query trace.pftrace "select name, count(*), sum(dur) from slice group by name"
  stretto query trace.pftrace --format csv "select ts, value from counters" > counters.csv
  stretto query trace.pftrace - < question.sql

Tables: slice, thread_track, process_track, track, counter, counter_track, counters, thread,
process, args, flow, android_logs, clock_snapshot, metadata, stats, trace_bounds. Times are ns.
"""


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = VerbParser("query", DESCRIPTION)
    parser.add_argument("trace", metavar="TRACE", help="may be gzipped; - is standard input")
    parser.add_argument("sql", metavar="SQL", help="the statements; - reads standard input")
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table")
    parsed = parser.parse_args(arguments)
    if parsed.trace == parsed.sql == "-":
        parser.error("standard input can be the trace or the SQL, not both")
    return parsed


def as_csv(columns: Sequence[str], rows: Rows) -> str:
    """Format rows as CSV with a header; NULL is empty."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([columns, *rows])
    return out.getvalue()


def as_json(columns: Sequence[str], rows: Rows) -> str:
    """Format rows as a list of objects."""
    objects = [dict(zip(columns, row, strict=True)) for row in rows]
    return json.dumps(objects, indent=1, default=str, ensure_ascii=False) + "\n"


_FORMATS = {"table": as_table, "csv": as_csv, "json": as_json}


def run(arguments: Sequence[str]) -> int:
    """Run `stretto query`.

    Raises:
        CommandError: The trace can't be read, the SQL is wrong, or DuckDB is missing.
    """
    given = _parse(arguments)
    sql = sys.stdin.read() if given.sql == "-" else given.sql
    try:
        with TraceProcessor(given.trace) as trace:
            result = trace.query(sql)
            rows = result.fetchall()
    except (DecodeError, QueryError) as error:
        raise CommandError(f"query: {error}") from error
    except ModuleNotFoundError as error:
        raise CommandError(f"query: {error}.") from error
    except OSError as error:
        reason = error.strerror or error
        raise CommandError(f"query: can't read {given.trace!r}: {reason}.", 2) from error
    print(_FORMATS[given.format](result.columns, rows), end="")
    return 0
