"""Tables of Chrome JSON are equal to those of the trace processor."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.conformance.tables import compare
from tests.support.oracle import Oracle

pytestmark = pytest.mark.once


def event(ph: str, ts: float | str, name: str | None = None, **more: Any) -> dict[str, Any]:
    """Return an event of thread 11 of process 10."""
    fields = {"ph": ph, "ts": ts, "pid": 10, "tid": 11, **more}
    return fields if name is None else {"name": name, "cat": "c", **fields}


SLICES = [
    event("M", 0, "process_name", args={"name": "app"}),
    {"ph": "M", "name": "thread_name", "pid": 10, "tid": 11, "args": {"name": "worker"}},
    event("B", 1, "outer", tts=5, args={"n": 1, "f": 1.5, "t": 'a"\\\u00e9\n', "b": True}),
    event("B", 2, "inner", args={"list": [1, None, [2, {"x": 3}]], "empty": {}, "d": {"e": "f"}}),
    event("E", 3, "inner", args={"more": 2**40, "exp": 1e300}),
    event("X", 3, "complete", dur=2.5, tdur=1, tts=6),
    event("X", 3, "longer", dur=4),
    event("X", 3, "overlapping", dur=400),
    event("E", 9, tts=7),
    event("X", "10.0005", None, dur="1"),
    event("X", 20, "no dur"),
    event("i", 12, "thread", s="t", tts=3),
    event("I", 13, "process", s="p"),
    event("R", 14, "global", s="g"),
    event("i", 15, "unknown", s="x"),
    {"ph": "i", "ts": 16, "name": "no thread", "pid": 10},
    {"ph": "B", "ts": 17, "name": "zero"},
    {"ph": "B", "ts": 18, "name": "negative", "pid": -1, "tid": 2**33},
    {"ph": "B", "name": "no ts", "pid": 10, "tid": 11},
    {"ts": 19, "name": "no phase", "pid": 10, "tid": 11},
    event("v", 20, "ignored"),
    event("B", 91.0005, "open"),
]
COUNTERS = [
    event("C", 1, "queue", args={"a": 1, "b": 2.5, "c": "7", "d": "x", "e": None}),
    event("C", 2, "queue", id="0x5", args={"a": 3}),
    event("C", 3, "queue"),
    event("B", 4, "slice"),
    event("C", 5, "other", args={"a": 1}, pid=20, tid=21),
]
ASYNC = [
    event("b", 1, "one", id="x", args={"k": 1}),
    event("b", 2, "two", id="x"),
    event("n", 3, "mark", id="x"),
    event("e", 4, "two", id="x"),
    event("e", 5, "one", id="x", args={"k": 2}),
    event("b", 2, "one", id=7),
    event("e", 8, "one", id=7),
    event("b", 3, "local", id2={"local": "0x1"}),
    event("b", 3, "local", id2={"local": "0x1"}, pid=20, tid=20),
    event("e", 4, "local", id2={"local": "0x1"}),
    event("b", 5, "global", id2={"global": 1}),
    event("e", 6, "global", id2={"global": 1}, pid=20, tid=20),
    event("b", 7, "no id"),
    event("n", 8, None, id="y"),
]
FLOWS = [
    event("X", 1, "a", dur=5),
    event("s", 2, "f", id=1),
    event("s", 2, "f", id=1),
    event("X", 10, "b", dur=5, tid=12),
    event("t", 11, "f", id=1, tid=12),
    event("f", 12, "f", id=1, bp="e", tid=12),
    event("f", 13, "f", id=1, tid=13),
    event("X", 14, "c", dur=5, tid=13),
    event("s", 30, "f", id="0xff"),
    event("f", 31, "g", id=9, bp="e"),
    event("t", 11, "g", id=9, tid=12),
    event("s", 32, "f", id="zz"),
    event("s", 32, "f"),
    event("X", 40, "out", dur=1, bind_id="0x20", flow_out=True),
    event("X", 50, "both", dur=1, bind_id="0x20", flow_out=True, flow_in=True),
    event("X", 60, "in", dur=1, bind_id="0x20", flow_in=True),
    event("X", 70, "neither", dur=1, bind_id="0x20"),
]


def encode(events: list[Any], **more: Any) -> bytes:
    return json.dumps({"traceEvents": events, **more}).encode()


def random_events(seed: int) -> list[dict[str, Any]]:
    """Return slices that nest or overlap, on some threads."""
    draw = random.Random(seed)
    return [
        event(
            draw.choice("BEEXXXibe"),
            draw.randrange(60) / draw.choice([1, 4]),
            draw.choice(["a", "b", None]),
            tid=draw.choice([11, 12]),
            dur=draw.randrange(20),
            id=draw.choice([1, "x"]),
            args={"n": draw.randrange(3)},
        )
        for _ in range(80)
    ]


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(encode(SLICES, displayTimeUnit="ns", other={"a": ["]", '\\"}']}), id="slices"),
        pytest.param(encode(COUNTERS), id="counters"),
        pytest.param(encode(ASYNC), id="asynchronous"),
        pytest.param(encode(FLOWS), id="flows"),
        pytest.param(json.dumps(SLICES[2:6], indent=1).encode(), id="list"),
        pytest.param(b" [" + json.dumps(SLICES[2]).encode() + b",\n", id="list without its end"),
        *(pytest.param(encode(random_events(seed)), id=f"random {seed}") for seed in range(6)),
    ],
)
def test_tables_of_json_are_equal(trace: bytes, oracle: type[Oracle]) -> None:
    different = [str(result) for result in compare(trace) if not result.is_equal]
    assert not different, "\n".join(different)
