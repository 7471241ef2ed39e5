"""The reports of `stretto flows`: their rows, and the formatting of rows."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from stretto.analysis.rpc_summary import by_method, slowest, unmatched
from stretto.cli.text_table import aligned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stretto.analysis.rpc_flows import Call, Message, RpcFlows
    from stretto.analysis.rpc_summary import Durations

    Row = Mapping[str, str | int | None]

METHODS, SLOWEST, UNMATCHED = "methods", "slowest", "unmatched"
HOW_TO_RECORD = (
    "`stretto record --flows app.py` records the messages of a program and of those that it\n"
    "starts; `stretto.flows.install()` in a program does the same. docs/flows.md describes both."
)
NO_MESSAGES = f"No RPC messages are in this trace.\n{HOW_TO_RECORD}"
_EMPTY = {
    METHODS: NO_MESSAGES,
    SLOWEST: "No calls with both ends.",
    UNMATCHED: "None.",
}


def rows(report: str, flows: RpcFlows, calls: Sequence[Call]) -> list[Row]:
    """Return the rows of a report; times are in nanoseconds."""
    if report == METHODS:
        return _methods(calls)
    chosen = slowest(calls) if report == SLOWEST else unmatched(calls)
    return [_call(call, flows) for call in chosen]


def _methods(calls: Sequence[Call]) -> list[Row]:
    return [
        {
            "method": each.method,
            "kind": each.kind,
            "count": each.count,
            "unmatched": each.unmatched,
            **_durations("latency", each.latency),
            **_durations("queueing", each.queueing),
            **_durations("service", each.service),
        }
        for each in by_method(calls)
    ]


def _durations(name: str, durations: Durations) -> Row:
    return {
        f"{name}_p50_ns": durations.p50,
        f"{name}_p90_ns": durations.p90,
        f"{name}_p99_ns": durations.p99,
        f"{name}_max_ns": durations.max,
    }


def _call(call: Call, flows: RpcFlows) -> Row:
    first = call.parts[0]
    return {
        "method": call.method,
        "kind": call.kind,
        "ts": first.timestamp,
        "latency_ns": call.latency_ns,
        "queueing_ns": call.queueing_ns,
        "service_ns": call.service_ns,
        "sender": _place(call.sent or call.reply_received, flows),
        "receiver": _place(call.received or call.reply_sent, flows),
        "flow": f"{first.flow:#018x}" if first.flow else None,
    }


def _place(message: Message | None, flows: RpcFlows) -> str | None:
    return None if message is None else flows.places.get(message.track, "")


def as_csv(table: Sequence[Row]) -> str:
    """Format rows as CSV with a header line."""
    text = io.StringIO()
    if table:
        writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    return text.getvalue()


def as_json(reports: Mapping[str, Sequence[Row]], damaged: int) -> str:
    """Format the rows of all reports, and the number of unreadable packets, as one JSON object."""
    return json.dumps({**reports, "damaged": damaged}, indent=2) + "\n"


def as_table(report: str, table: Sequence[Row], limit: int) -> str:
    """Format rows as an aligned table, without the 90th percentiles; times in microseconds.

    Reports of calls have at most `limit` rows, and a line with the number of omitted rows.
    """
    if not table:
        return _EMPTY[report] + "\n"
    more = 0 if report == METHODS else max(len(table) - limit, 0)
    shown = table[: len(table) - more]
    return (_aligned(shown) if shown else "") + (f"… and {more} more: see --limit\n" * bool(more))


def _aligned(table: Sequence[Row]) -> str:
    columns = [name for name in table[0] if name not in ("ts", "flow") and "_p90_" not in name]
    lines = [[_heading(name) for name in columns]]
    lines += [[_cell(row[name], name) for name in columns] for row in table]
    numbers = [name.endswith("_ns") or name in ("count", "unmatched") for name in columns]
    return aligned(lines, numbers)


def _heading(name: str) -> str:
    return name.removesuffix("_ns").replace("_", " ") + (" µs" if name.endswith("_ns") else "")


def _cell(value: str | int | None, name: str) -> str:
    if value is None:
        return "-"
    return f"{int(value) / 1000:.1f}" if name.endswith("_ns") else printable(str(value))


def printable(text: str) -> str:
    """Escape control characters of a trace's text, which could move a terminal's cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def remarks(flows: RpcFlows) -> Iterator[str]:
    """Yield notes for the user about messages and calls with wrong or missing times."""
    if flows.lacks:
        yield (
            f"No {flows.lacks} is recorded in this trace: no message has both ends, and so no "
            f"latency. Record clients and\nservers in one trace. {HOW_TO_RECORD}"
        )
    loose = sum(call.is_loose for call in flows.calls)
    if loose:
        yield (
            f"{loose} messages have no flow, and can't be joined to calls. In each process "
            "`stretto.flows.stats()` returns the reasons;\ndocs/flows.md describes them."
        )
    early = sum(min(call.queueing_ns or 0, call.latency_ns or 0) < 0 for call in flows.calls)
    if early:
        yield f"{early} calls arrived before they were sent: the clocks of their machines differ."
    if flows.damaged:
        yield f"{flows.damaged} packets or events of the trace couldn't be read."
