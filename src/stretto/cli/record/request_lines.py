"""Formats the line of the summary about requests between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.rpc_flows import read_rpc_flows
from stretto.analysis.rpc_summary import by_method
from stretto.cli.record.detail_lines import time_text

if TYPE_CHECKING:
    from typing import BinaryIO

    from stretto.analysis.rpc_flows import Call


def _time_ns(call: Call) -> int:
    """Return how long a call has lasted: for its caller, or else for its handler."""
    return call.latency_ns or call.service_ns or 0


def request_lines(file: BinaryIO) -> list[str]:
    """Return a line about the number of requests, the slowest one, and those seen at one end only.

    Args:
        file: the trace.

    Returns:
        No line without requests.
    """
    calls = [call for call in read_rpc_flows(file).calls if call.kind != "reply"]
    methods = by_method(calls)
    if not methods:
        return []
    line = f"  requests: {sum(each.count for each in methods):,}"
    slow = max(calls, key=_time_ns)
    if _time_ns(slow):
        line += f", the slowest {slow.method} {time_text(_time_ns(slow))}"
    if unmatched := sum(each.unmatched for each in methods):
        line += f", {unmatched:,} recorded at one end only"
    return [f"{line}; `stretto flows` has more"]
