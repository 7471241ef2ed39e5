"""Many FIDL messages between two processes have exactly the right arrows.

`make endurance` sends 100,000 messages; a plain test run sends fewer.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from fidl_support import many as fidl_many
from fidl_support.many import FIRST_EVENT, loses
from tests.support.oracle import Oracle, missing
from tests.support.recorded import record

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

ENDURANCE = bool(os.environ.get("STRETTO_ENDURANCE"))
MESSAGES = 100_000 if ENDURANCE else 20_000
LOSE_EVERY = 97

CALL = [("send", "request"), ("receive", "request"), ("send", "reply"), ("receive", "reply")]
HANDLED = CALL[1], ("receive", "one-way")
SLICES = """
select s.id, extract_arg(s.arg_set_id, 'debug.role'), extract_arg(s.arg_set_id, 'debug.kind'),
       extract_arg(s.arg_set_id, 'debug.body.serial')
from slice s where s.category = 'test.many' order by s.ts, s.id
"""
ARROWS = "select slice_out, slice_in, trace_id from flow"


class Point(NamedTuple):
    """A point of the model: the sending or the receiving end of a message."""

    role: str
    kind: str
    serial: int


class Recording:
    """The points (messages at one end) and the arrows in a trace."""

    def __init__(self, trace: bytes) -> None:
        oracle = Oracle(trace)
        assert oracle.errors() == []
        named = {row: Point(*point) for row, *point in oracle.query(SLICES)}
        self.points = list(named.values())
        self.there = set(self.points)
        assert len(self.there) == len(self.points)
        rows = oracle.query(ARROWS)
        self.arrows = sorted((named[out], named[into]) for out, into, _ in rows)
        self.ids: dict[int, set[int]] = {}
        for out, _, trace_id in rows:
            self.ids.setdefault(trace_id, set()).add(named[out].serial)

    def pairs(self, without: frozenset[Point] = frozenset()) -> list[tuple[Point, Point]]:
        """Return the expected arrows; points in `without` have no arrow."""
        there = self.there - without
        expected = []
        for serial in {point.serial for point in there}:
            call = (Point(*each, serial) for each in CALL)
            expected += pairwise(point for point in call if point in there)
            for kind in ("one-way", "event"):
                ends = Point("send", kind, serial), Point("receive", kind, serial)
                expected += [ends] if there.issuperset(ends) else []
        return sorted(expected)


def record_run(folder: Path, *, lose_every: int) -> Recording:
    """Record a run of the program fidl_support/many.py."""
    run = record(
        folder / "trace.pftrace",
        *("--buffer=256mb", "--no-functions", "--", fidl_many.__file__, str(folder / "sock")),
        *(str(MESSAGES), str(MESSAGES // 4), str(lose_every)),
        PYTHONPATH=":".join(sys.path),
    )
    assert run.status == 0, run.stderr
    return Recording(run.trace)


def test_messages_of_four_senders_have_exactly_the_expected_arrows(tmp_path: Path) -> None:
    recording = record_run(tmp_path, lose_every=0)
    sent = {p for p in recording.there if p.role == "send" and p.kind in ("one-way", "request")}
    assert len(sent) > 0.7 * MESSAGES
    assert recording.arrows == recording.pairs()
    # Each message traced at both ends has one arrow and a unique id.
    both = {point._replace(role="receive") for point in sent} & recording.there
    assert len(both) > 0.65 * MESSAGES
    assert both <= {into for _, into in recording.arrows}
    assert all(len(serials) == 1 for serials in recording.ids.values())
    assert len(recording.ids) >= len(both)


def test_messages_after_a_lost_count_have_no_arrows_until_the_next_call(tmp_path: Path) -> None:
    recording = record_run(tmp_path, lose_every=LOSE_EVERY)
    without_arrows = frozenset(without_id(recording.points))
    assert len(without_arrows) > MESSAGES / 100
    assert recording.arrows == recording.pairs(without_arrows)
    assert len(recording.arrows) > 0.5 * MESSAGES


def without_id(points: list[Point]) -> list[Point]:
    """Return the points at the server that have no arrow.

    After the server has lost a message count, its points have no arrows until the next call.
    """
    without_arrows, knows_read, knows_written = [], True, True
    handled = {point.serial for point in points if point[:2] in HANDLED}
    for point in points:
        at_server = point.role == ("receive" if point.kind in ("one-way", "request") else "send")
        if not at_server:
            continue
        if point.kind == "request":
            knows_read = True
        elif point.kind == "reply":
            knows_written = True
        elif not (knows_read if point.kind == "one-way" else knows_written):
            without_arrows.append(point)
        # The server loses count of its messages just after it sends an event, or just before it
        # sends a reply.
        serial = point.serial - FIRST_EVENT if point.kind == "event" else point.serial
        what = loses(serial, LOSE_EVERY) if serial in handled and settles(point) else ""
        knows_read = knows_read and what != "in"
        knows_written = knows_written and what != "out"
    return without_arrows


def settles(point: Point) -> bool:
    """Return whether the server may lose count of the messages directly after a point.

    After every tenth message the server sends an event. It then loses the count after this event,
    not after the message.
    """
    if point.kind in ("one-way", "request"):
        return point.serial % 10 != 0
    return point.kind == "event"
