"""Reads the flow arrows between RPC messages from a trace."""

from __future__ import annotations

from tests.support.recorded_events import END, Event

ONE_WAY = [("send", "one-way"), ("receive", "one-way")]
CALL = [("send", "request"), ("receive", "request"), ("send", "reply"), ("receive", "reply")]


def arrows(events: list[Event], method: str) -> list[list[tuple[str, str]]]:
    """Return, for each flow of a method, the (role, kind) of its messages, ordered by time."""
    chains: dict[int, list[tuple[str, str]]] = {}
    for event in sorted(events, key=lambda event: event.timestamp):
        if event.kind != END and event.args.get("role") and event.args["method"] == method:
            (flow,) = event.flows + event.terminating_flows
            chains.setdefault(flow, []).append((event.args["role"], event.args["kind"]))
    return list(chains.values())
