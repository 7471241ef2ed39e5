"""Perfetto's trace processor finds exactly the flow arrows that a model predicts."""

from __future__ import annotations

import io
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from stretto import flows
from stretto.analysis.rpc_flows import read_rpc_flows
from stretto.ipc.service import Raw
from tests.support import framed_rpc, ipc_many
from tests.support.flow_points import Point, expected
from tests.support.oracle import Oracle, missing
from tests.support.recorded import record as record_program
from tests.support.recorded_events import record
from tests.support.traced_greeter import TracedGreeter, flows_installed

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

MESSAGES = """
select s.id, s.ts,
       extract_arg(s.arg_set_id, 'debug.role'), extract_arg(s.arg_set_id, 'debug.kind'),
       extract_arg(s.arg_set_id, 'debug.txid'), extract_arg(s.arg_set_id, 'debug.ordinal'),
       extract_arg(s.arg_set_id, 'debug.method')
from slice s where s.category in ('test.greeter', 'test.framed') order by s.ts, s.id
"""
ARROWS = "select slice_out, slice_in from flow"


def read(trace: bytes, *, by_ordinal: bool) -> tuple[dict[Point, int], list[tuple[Point, Point]]]:
    """Return the flow points with their times, and the arrows of a trace."""
    oracle = Oracle(trace)
    assert oracle.errors() == []
    named: dict[int, Point] = {}
    times: dict[Point, int] = {}
    seen: Counter[tuple[str, str, int]] = Counter()
    for row, timestamp, role, kind, txid, ordinal, method in oracle.query(MESSAGES):
        assert method
        key = (role, kind, ordinal if by_ordinal else txid)
        named[row] = point = (*key, seen[key])
        times[point] = timestamp
        seen[key] += 1
    arrows = [(named[out], named[into]) for out, into in oracle.query(ARROWS)]
    return times, arrows


def make_random_calls(greeter: TracedGreeter, draw: random.Random, steps: int) -> None:
    """Make random calls; some are concurrent, some fail, and some have replies in several parts."""
    for _ in range(steps):
        choice = draw.randrange(8)
        if choice < 3:
            method = draw.choice(["Echo", "Later", "Refuse"])
            greeter.call(method, one_way=draw.random() < 0.3)
        elif choice == 3:
            greeter.call("Count", b"%d" % draw.randrange(1, 5))
        elif choice == 4 and greeter.later:
            deferred = greeter.later.pop(draw.randrange(len(greeter.later)))
            if draw.random() < 0.5:
                deferred.resolve(Raw(b"at last"))
            else:
                deferred.reject()
        elif choice < 7:
            greeter.run()
        else:
            greeter.call("Hush")


@pytest.mark.parametrize("seed", range(6))
def test_arrows_of_random_calls_equal_the_model(seed: int) -> None:
    draw = random.Random(seed)
    with flows_installed():
        greeter = TracedGreeter()
        # Some messages have already been sent when tracing starts.
        make_random_calls(greeter, draw, 40)
        with record() as recorded:
            make_random_calls(greeter, draw, 300)
            greeter.run()
        greeter.close()
        assert flows.stats() == {}
    points, arrows = read(recorded.trace, by_ordinal=False)
    assert len(points) > 300
    assert sorted(arrows) == sorted(expected(points))
    assert len(arrows) > 150


@pytest.mark.thorough
def test_arrows_equal_the_model_if_tracing_starts_during_the_traffic(tmp_path: Path) -> None:
    messages, enable_at = 100_000, 25_000
    run = record_program(
        tmp_path / "trace.pftrace",
        "--buffer=256mb",
        "--no-functions",
        "--",
        framed_rpc.__file__,
        str(tmp_path / "sock"),
        str(messages),
        str(enable_at),
        PYTHONPATH=":".join(sys.path),
    )
    assert run.status == 0, run.stderr
    points, arrows = read(run.trace, by_ordinal=True)
    sent = {point for point in points if point[:2] in (("send", "one-way"), ("send", "request"))}
    assert len(sent) > 0.7 * messages
    assert not any(point[3] for point in points)
    assert sorted(arrows) == sorted(expected(points))
    # Each message that both the sender and the receiver traced has an arrow.
    both = {("receive", *point[1:]) for point in sent} & points.keys()
    assert both <= {into for _, into in arrows}
    # `stretto flows` finds the same arrows as the trace processor.
    calls = read_rpc_flows(io.BytesIO(run.trace)).calls
    found = [call.queueing_ns or 0 for call in calls if call.kind == "one-way" and call.matched]
    one_ways = [(points[out], points[into]) for out, into in arrows if out[1] == "one-way"]
    assert sorted(found) == sorted(into - out for out, into in one_ways)
    assert len(both) > 0.65 * messages


def test_arrows_between_two_processes_with_four_callers_equal_the_model(tmp_path: Path) -> None:
    messages = 8000
    run = record_program(
        tmp_path / "trace.pftrace",
        *("--buffer=64mb", "--no-functions", "--", ipc_many.__file__, str(tmp_path / "sock")),
        *(str(messages), str(messages // 4)),
        PYTHONPATH=":".join(sys.path),
    )
    assert run.status == 0, run.stderr
    points, arrows = read(run.trace, by_ordinal=False)
    assert sorted(arrows) == sorted(expected(points))
    kinds = Counter(point[:2] for point in points)
    assert kinds["receive", "one-way"] > messages / 10
    assert kinds["receive", "request"] > messages / 4
    assert (
        kinds["receive", "reply"] > kinds["receive", "request"]
    )  # some replies are sent in several parts
    assert len(arrows) > messages
