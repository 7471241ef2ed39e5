"""A model of the flow arrows between RPC messages.

A point is the sending or the receiving of one message.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

Point = tuple[str, str, int, int]
"""Role, kind, number of the call, and number of the part if a reply has several parts."""

CALL = [("send", "request"), ("receive", "request"), ("send", "reply"), ("receive", "reply")]


def expected(points: Iterable[Point]) -> list[tuple[Point, Point]]:
    """Return the expected arrows as pairs of points."""
    there = set(points)
    arrows = []
    for number in {point[2] for point in points}:
        chain = [(*each, number, 0) for each in CALL if (*each, number, 0) in there]
        arrows += pairwise(chain)
        for kind in ("one-way", "event"):
            arrows += [((("send", kind, number, 0)), ("receive", kind, number, 0))]
        part = 1
        while ("send", "reply", number, part) in there:
            arrows.append((("send", "reply", number, part), ("receive", "reply", number, part)))
            part += 1
    return [(out, into) for out, into in arrows if out in there and into in there]
