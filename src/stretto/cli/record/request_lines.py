"""Formats the line of the summary about requests between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.rpc_flows import read_rpc_flows
from stretto.analysis.rpc_summary import by_method, slowest
from stretto.cli.record.detail_lines import time_text

if TYPE_CHECKING:
    from typing import BinaryIO


def request_lines(file: BinaryIO) -> list[str]:
    """Return a line about the number of requests, the slowest one, and those without an end.

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
    slow = slowest(calls)
    if slow:
        line += f", the slowest {slow[0].method} {time_text(slow[0].latency_ns or 0)}"
    if unmatched := sum(each.unmatched for each in methods):
        line += f", {unmatched} without its other end"
    return [f"{line}; `stretto flows` has more"]
