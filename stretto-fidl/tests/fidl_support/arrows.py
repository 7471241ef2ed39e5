"""Reads the traced messages and flow arrows of a trace with the real trace processor."""

from __future__ import annotations

from collections import Counter

from tests.support.flow_points import Point, expected
from tests.support.oracle import Oracle

MESSAGES = """
select s.id,
       extract_arg(s.arg_set_id, 'debug.role'), extract_arg(s.arg_set_id, 'debug.kind'),
       extract_arg(s.arg_set_id, 'debug.txid'), extract_arg(s.arg_set_id, 'debug.bytes'),
       extract_arg(s.arg_set_id, 'debug.method'), s.name, s.dur
from slice s where s.category = 'test.fidl' order by s.ts, s.id
"""
ARROWS = "select slice_out, slice_in from flow"


def read(trace: bytes) -> tuple[list[Point], list[tuple[Point, Point]]]:
    """Return the points and arrows of a trace.

    A point is a message at one end. A call is identified by its transaction id, another message by
    its size.
    """
    oracle = Oracle(trace)
    assert oracle.errors() == []
    named: dict[int, Point] = {}
    for row, role, kind, txid, size, method, name, duration in oracle.query(MESSAGES):
        assert method == name
        assert method in ("Ask", "Later", "Tell", "OnTell")
        # A call's slice ends when the call returns, raises an exception or is cancelled.
        assert duration >= 0
        named[row] = (role, kind, txid or size, 0)
    assert max(Counter(named.values()).values()) == 1
    arrows = [(named[out], named[into]) for out, into in oracle.query(ARROWS)]
    return list(named.values()), arrows


def check(trace: bytes, least: int) -> list[Point]:
    """Check the arrows of a trace against the model, and return the points that the trace has."""
    points, arrows = read(trace)
    assert sorted(arrows) == sorted(expected(points))
    assert len(arrows) >= least
    return points
