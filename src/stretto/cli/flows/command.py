"""`stretto flows`: reports the RPC calls of a trace."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stretto.analysis.open_packets import open_trace
from stretto.analysis.rpc_flows import read_rpc_flows
from stretto.analysis.rpc_summary import select_calls
from stretto.base.errors import CommandError
from stretto.cli.flows.report import (
    METHODS,
    NO_MESSAGES,
    SLOWEST,
    UNMATCHED,
    as_csv,
    as_json,
    as_table,
    printable,
    remarks,
    rows,
)
from stretto.cli.trace_reading import reading, warn_of_damage
from stretto.cli.verb_parser import VerbParser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stretto.analysis.rpc_flows import Call, RpcFlows
    from stretto.cli.flows.report import Row

DESCRIPTION = """\
Show the RPC calls of a trace by method: their number, their latency, the time until the handler
starts (queueing) and the time in the handler (service); the slowest calls; and messages with only
one end in the trace.

  stretto flows trace.pftrace
  stretto flows trace.pftrace --format csv > methods.csv
  stretto flows trace.pftrace --report slowest --method 'Greeter.*' --limit 20

Times are microseconds in the table, nanoseconds in CSV and JSON. A trace of Fuchsia (.fxt) has
the calls recorded by its kernel, named by their ordinals; `stretto fidl symbolize` replaces these
by the methods' names.
"""

_TABLE_LIMIT = 10
_SHOWN_NAMES = 8
_TITLES = {METHODS: "Calls by method", SLOWEST: "Slowest calls", UNMATCHED: "Unmatched"}


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = VerbParser("flows", DESCRIPTION)
    parser.add_argument("trace", metavar="TRACE", help="may be gzipped; - is standard input")
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table")
    parser.add_argument(
        "--report",
        choices=(METHODS, SLOWEST, UNMATCHED),
        help="print only this report (default: all; with csv: methods)",
    )
    parser.add_argument(
        "--method",
        metavar="PATTERN",
        default="*",
        help="only methods with a matching name, with the service (Greeter.Say*) or without (Say*)",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=int,
        help="number of slowest and unmatched calls to print (default: 10; csv and json: all)",
    )
    parsed = parser.parse_args(arguments)
    if parsed.limit is not None and parsed.limit < 0:
        parser.error("--limit must be at least 0")
    return parsed


def _read(path: str) -> RpcFlows:
    with reading("flows", path), open_trace(path) as packets:
        return read_rpc_flows(packets)


def _selected(flows: RpcFlows, pattern: str) -> list[Call]:
    calls = select_calls(flows.calls, pattern)
    if flows.calls and not calls:
        names = sorted({call.method for call in flows.calls})
        shown = ", ".join(map(printable, names[:_SHOWN_NAMES]))
        more = f" and {len(names) - _SHOWN_NAMES} more" * (len(names) > _SHOWN_NAMES)
        raise CommandError(f"flows: no method matches {pattern!r}: there are {shown}{more}.")
    return calls


def run(arguments: Sequence[str]) -> int:
    """Run `stretto flows`.

    Raises:
        CommandError: the trace can't be read.
    """
    given = _parse(arguments)
    flows = _read(given.trace)
    warn_of_damage("flows", given.trace, flows.unread)
    if not flows.calls and given.format != "table" and sys.stderr is not None:
        print(f"stretto: flows: {NO_MESSAGES}", file=sys.stderr)
    calls = _selected(flows, given.method)
    wanted = [given.report] if given.report else [METHODS, SLOWEST, UNMATCHED]
    reports = {report: rows(report, flows, calls) for report in wanted}
    if given.format == "csv":
        print(as_csv(_first(wanted[0], reports[wanted[0]], given.limit)), end="")
        return 0
    if given.format == "json":
        cut = {report: _first(report, table, given.limit) for report, table in reports.items()}
        print(as_json(cut, flows.damaged), end="")
        return 0
    limit = _TABLE_LIMIT if given.limit is None else given.limit
    for report, table in reports.items():
        print(f"{_TITLES[report]}\n\n{as_table(report, table, limit)}")
    for remark in remarks(flows):
        print(remark)
    return 0


def _first(report: str, table: list[Row], limit: int | None) -> list[Row]:
    return table if report == METHODS else table[:limit]
