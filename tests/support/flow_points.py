"""A model of the arrows of a conversation: which points of its messages are connected."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

Point = tuple[str, str, int, int]
"""role, kind, number of the message, and which of its kind (answers in parts)."""

CALL = [("send", "request"), ("receive", "request"), ("send", "reply"), ("receive", "reply")]


def expected(points: Iterable[Point]) -> list[tuple[Point, Point]]:
    """The expected arrows between these points."""
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
