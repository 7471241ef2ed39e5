"""Chrome's JSON becomes packets with the same slices, counters, flows and threads."""

from __future__ import annotations

import io
import json
from collections import Counter
from typing import Any

import pytest

from stretto.analysis.conversion import convert
from stretto.analysis.export.lanes import read_arguments
from stretto.analysis.fxt.outcome import Outcome
from stretto.analysis.table_rows import rows_of
from stretto.analysis.trace_tables import import_trace, statistics
from stretto.base.errors import ConfigError


def event(ph: str, ts: float, name: str, **more: Any) -> dict[str, Any]:
    """Return an event of thread 11 of process 10."""
    return {"ph": ph, "ts": ts, "name": name, "cat": "c", "pid": 10, "tid": 11, **more}


EVENTS = [
    event("M", 0, "process_name", args={"name": "app"}),
    event("M", 0, "thread_name", args={"name": "worker"}),
    event("B", 1, "outer", args={"n": 1, "f": 1.5, "t": "x", "b": True, "d": {"e": [1, 2]}}),
    event("X", 2, "inner", dur=0.5),
    event("X", 3, "inner", dur=0),
    event("E", 4, "outer"),
    event("i", 5, "mark", s="t"),
    event("i", 5, "of the process", s="p"),
    event("b", 6, "request", id="x"),
    event("b", 6, "request", id="y"),
    event("e", 8, "request", id="x"),
    event("e", 9, "request", id="y"),
    event("C", 6, "queue", args={"size": 7, "free": 2.5}),
    event("B", 10, "caller"),
    event("s", 10, "call", id=5),
    event("E", 11, "caller"),
    event("B", 12, "handler", tid=12),
    event("f", 12, "call", id=5, tid=12, bp="e"),
    event("B", 13, "open"),
]


def converted(events: list[dict[str, Any]]) -> tuple[bytes, Outcome]:
    packets = io.BytesIO()
    outcome = convert(io.BytesIO(json.dumps(events).encode()), "json", packets.write, "pftrace")
    return packets.getvalue(), outcome


def contents(trace: bytes) -> dict[str, Counter[Any]]:
    """Return the rows of a trace without their ids, with the owners of tracks by pid and tid."""
    importer = import_trace(trace)
    pids = {row["upid"]: (row["pid"], row["name"]) for row in rows_of(importer, "process")}
    threads = {
        row["utid"]: (row["tid"], row["name"], pids.get(row["upid"]))
        for row in rows_of(importer, "thread")
    }
    owners = {
        row["id"]: (row["name"], threads.get(row["utid"]), pids.get(row["upid"]))
        for row in rows_of(importer, "__intrinsic_track")
    }
    arguments: dict[int | None, Any] = {
        number: tuple((key.partition(".")[2], value) for key, value in found.items())
        for number, found in read_arguments(importer).items()
    }
    slices = [
        (row["ts"], row["dur"], row["name"], row["category"], row["depth"],
         owners[row["track_id"]], arguments.get(row["arg_set_id"]))
        for row in rows_of(importer, "slice")
    ]  # fmt: skip
    counters = [
        (row["ts"], row["value"], owners[row["track_id"]]) for row in rows_of(importer, "counter")
    ]
    flows = [
        (slices[row["slice_out"]], slices[row["slice_in"]]) for row in rows_of(importer, "flow")
    ]
    named = [thread for thread in threads.values() if thread[0]]
    found = {"slices": slices, "counters": counters, "flows": flows, "threads": named}
    return {name: Counter(rows) for name, rows in found.items()}


def test_packets_have_the_rows_of_the_json() -> None:
    packets, outcome = converted(EVENTS)
    before, after = contents(json.dumps(EVENTS).encode()), contents(packets)
    assert {name: rows.total() for name, rows in before.items()} == {
        "slices": 10, "counters": 2, "flows": 1, "threads": 3,
    }  # fmt: skip
    assert after == before
    assert not outcome.left_out
    assert outcome.made == {"slice": 7, "instant": 3, "counter value": 2}


def test_slice_that_outlasts_the_one_around_it_is_cut_and_counted() -> None:
    events = [event("B", 1, "outer"), event("X", 2, "long", dur=50), event("E", 3, "outer")]
    packets, outcome = converted(events)
    found = {row["name"]: row["dur"] for row in rows_of(import_trace(packets), "slice")}
    assert found == {"outer": 2000, "long": 1000}
    assert outcome.left_out == {"ends of slices after the slice around them": 1}


def test_negative_duration_is_counted_and_does_not_become_an_unfinished_slice() -> None:
    events = [event("X", 10, "negative", dur=-5), event("X", 20, "after", dur=5)]
    imported = import_trace(json.dumps(events).encode())
    rows = [(row["dur"], row["depth"]) for row in rows_of(imported, "slice")]
    assert rows == [(-5000, 0), (5000, 0)]
    packets, outcome = converted(events)
    found = {row["name"]: row["dur"] for row in rows_of(import_trace(packets), "slice")}
    assert found == {"negative": 0, "after": 5000}
    assert outcome.left_out == {"negative durations of slices": 1}


def test_arguments_that_nest_too_deeply_are_counted() -> None:
    deep: Any = 1
    for _ in range(70):
        deep = [deep]
    json_text = json.dumps([event("X", 1, "deep", dur=1, args={"x": deep, "y": 1})]).encode()
    importer = import_trace(json_text)
    assert statistics(importer)["stretto_undecodable_arguments"] == 1
    assert "args.y" in [row["key"] for row in rows_of(importer, "__intrinsic_args")]


def test_losses_are_counted() -> None:
    events = [event("B", 1, "a", tts=5), event("E", 2, "a", tts=6), {"ts": 3}, event("X", 4, "x")]
    _, outcome = converted(events)
    assert outcome.left_out == {
        "CPU times of slices": 1,
        "events that can't be read": 1,
        "events without what their phase needs": 1,
    }


@pytest.mark.parametrize("size", [0, 100_000], ids=["short", "longer than what is peeked"])
def test_object_with_other_members_first_is_recognized(size: int) -> None:
    metadata = {"name": '"packet":[', "command line": "x" * size}
    text = json.dumps(
        {"otherData": metadata, "deviceProperties": [{"id": 0}], "traceEvents": EVENTS}
    )
    packets = io.BytesIO()
    outcome = convert(io.BytesIO(text.encode()), "json", packets.write, "pftrace")
    assert outcome.made["slice"] == 7


def test_packets_that_mention_events_are_packets() -> None:
    text = '{"packet":[{"trackEvent":{"type":"TYPE_INSTANT","name":"\\"traceEvents\\""}}]}'
    outcome = convert(io.BytesIO(text.encode()), "json", io.BytesIO().write, "pftrace")
    assert outcome.made == {"packet": 1}


@pytest.mark.parametrize("size", [0, 3 << 20], ids=["short", "several pieces"])
def test_object_without_events_is_an_error(size: int) -> None:
    text = json.dumps({"otherData": "x" * size})
    with pytest.raises(ConfigError, match="this is no trace"):
        convert(io.BytesIO(text.encode()), "json", io.BytesIO().write, "pftrace")
