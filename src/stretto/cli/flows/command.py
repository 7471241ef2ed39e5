"""`stretto flows`: what a trace tells of RPC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.open_packets import open_packets
from stretto.analysis.rpc_flows import read_rpc_flows
from stretto.analysis.rpc_summary import select_calls
from stretto.base.errors import CommandError, DecodeError
from stretto.cli.flows.report import METHODS, SLOWEST, UNMATCHED, as_csv, as_json, as_table, rows
from stretto.cli.verb_parser import VerbParser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

DESCRIPTION = """\
The RPC calls of a trace, by method: how many, how long they took, how long they waited for
their handler (queueing) and how long that worked (service); the slowest calls; and messages
of which the trace has one end only.

  stretto flows trace.pftrace
  stretto flows trace.pftrace --format csv > methods.csv
  stretto flows trace.pftrace --report slowest --method 'Greeter.*' --limit 20

Times are microseconds in the table, nanoseconds in CSV and JSON. The trace may also be one of
Fuchsia's (.fxt): then the calls are those that its kernel saw, named by their ordinals; `stretto
fidl symbolize` gives them names.
"""

_TITLES = {METHODS: "Calls by method", SLOWEST: "Slowest calls", UNMATCHED: "Unmatched"}


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = VerbParser("flows", DESCRIPTION)
    parser.add_argument("trace", metavar="TRACE")
    parser.add_argument("--format", choices=("table", "csv", "json"), default="table")
    parser.add_argument(
        "--report",
        choices=(METHODS, SLOWEST, UNMATCHED),
        help="only this one (default: all; with csv: methods)",
    )
    parser.add_argument("--method", metavar="PATTERN", default="*", help="with * and ?")
    parser.add_argument("--limit", metavar="N", type=int, default=10, help="slowest calls (10)")
    parsed = parser.parse_args(arguments)
    if parsed.limit < 0:
        parser.error("--limit is a number from 0 on")
    return parsed


def run(arguments: Sequence[str]) -> int:
    """`stretto flows`.

    Raises:
        CommandError: the trace can't be read.
    """
    given = _parse(arguments)
    try:
        with open(given.trace, "rb") as file, open_packets(file) as packets:
            flows = read_rpc_flows(packets)
    except DecodeError as error:
        raise CommandError(f"flows: {given.trace!r}: {error}.") from error
    except OSError as error:
        raise CommandError(f"flows: can't read {given.trace!r}: {error.strerror}.", 2) from error
    calls = select_calls(flows.calls, given.method)
    wanted = [given.report] if given.report else [METHODS, SLOWEST, UNMATCHED]
    if given.format == "csv":
        print(as_csv(rows(wanted[0], flows, calls, given.limit)), end="")
        return 0
    reports = {report: rows(report, flows, calls, given.limit) for report in wanted}
    if given.format == "json":
        print(as_json(reports, flows.damaged), end="")
        return 0
    for report, table in reports.items():
        print(f"{_TITLES[report]}\n\n{as_table(report, table)}")
    if flows.damaged:
        print(f"{flows.damaged} packets or events of the trace couldn't be read.")
    return 0
