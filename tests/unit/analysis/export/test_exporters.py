"""Exports are read by the format's own readers, or have the fields that those need."""

from __future__ import annotations

import gzip
import json
import pstats
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto import _native
from stretto.analysis.empty_trace import EmptyTraceError
from stretto.analysis.export.exporters import FORMATS, export, format_of_export
from stretto.analysis.export.lanes import Slice, read_lanes
from stretto.analysis.export.stacks import self_times
from stretto.analysis.trace_tables import import_trace
from stretto.protozero.wire import read_fields, read_varint
from tests.support.recorded_events import record

category = stretto.Category("test.export")


@pytest.fixture(scope="module")
def importer() -> _native.TraceImporter:
    with record() as recorded:
        for _ in range(2):
            with category.slice("outer", size=3), category.slice("in;ner"):
                category.instant("leaf")
        category.counter("queue", 7)
        category.begin("job", track=stretto.Track("lane"))
    return import_trace(bytes(recorded.trace))


def exported(importer: _native.TraceImporter, target: str) -> bytes:
    return b"".join(export(importer, target, "t.pftrace"))


def durations(importer: _native.TraceImporter) -> dict[str, int]:
    """Return the total time of each name."""
    found: dict[str, int] = {}
    for lane in read_lanes(importer):
        for each in lane.slices:
            found[each.name] = found.get(each.name, 0) + each.end - each.start
    return found


def test_self_times_leave_out_the_slices_inside() -> None:
    slices = [
        Slice(0, 100, "a", "", 0, None),
        Slice(10, 40, "b", "", 1, None),
        Slice(20, 25, "c", "", 2, None),
        Slice(50, 60, "b", "", 1, None),
        Slice(200, 210, "a", "", 0, None),
    ]
    assert list(self_times(slices)) == [
        (("a", "b", "c"), 5),
        (("a", "b"), 25),
        (("a", "b"), 10),
        (("a",), 60),
        (("a",), 10),
    ]


def test_chrome_json_has_the_same_slices_when_it_is_imported(
    importer: _native.TraceImporter,
) -> None:
    again = import_trace(exported(importer, "chrome"))
    before = {each.name: each.depth for lane in read_lanes(importer) for each in lane.slices}
    after = {each.name: each.depth for lane in read_lanes(again) for each in lane.slices}
    assert after == before
    old, new = durations(importer), durations(again)
    assert all(abs(new[name] - old[name]) <= 2 for name in old)
    _, counters = again.rows("counter")
    assert [row[-2] for row in counters] == [7.0]
    names, args = again.rows("__intrinsic_args")
    assert 3 in {row[names.index("int_value")] for row in args}


def test_overlapping_slices_of_tracks_of_a_thread_are_in_the_chrome_json() -> None:
    tracks = [stretto.Track("job", parent=stretto.thread_track(), id=number) for number in (1, 2)]
    with record() as recorded:
        category.begin("first", track=tracks[0])
        with category.slice("own"):
            category.begin("second", track=tracks[1])
            category.end(track=tracks[0])
        category.end(track=tracks[1])
    original = import_trace(bytes(recorded.trace))
    again = import_trace(exported(original, "chrome"))
    old, new = durations(original), durations(again)
    assert old.keys() == new.keys() == {"first", "second", "own"}
    assert all(abs(new[name] - old[name]) <= 2 for name in old)
    assert sorted(lane.name for lane in read_lanes(again)) == sorted(
        lane.name for lane in read_lanes(original)
    )


def test_json_lines_have_all_names(importer: _native.TraceImporter) -> None:
    lines = [json.loads(line) for line in exported(importer, "jsonl").splitlines()]
    slices = [line for line in lines if line["type"] == "slice"]
    assert [line["name"] for line in slices].count("outer") == 2
    assert {line["category"] for line in slices} == {"test.export"}
    assert slices[0]["args"]["size"] == 3
    assert [line["value"] for line in lines if line["type"] == "counter"] == [7.0]
    assert all(line["pid"] > 0 for line in slices)


def test_collapsed_stacks_have_one_line_per_stack() -> None:
    with record() as recorded:
        start = 10**9
        track = stretto.Track("lane")
        category.begin("a;b", track=track, timestamp=start)
        category.begin("c", track=track, timestamp=start + 1_000_000)
        category.end(track=track, timestamp=start + 3_000_000)
        category.end(track=track, timestamp=start + 4_000_000)
    made = exported(import_trace(bytes(recorded.trace)), "collapsed").decode()
    assert sorted(made.splitlines()) == ["lane;a:b 2000", "lane;a:b;c 2000"]


def test_speedscope_weights_are_the_self_times(importer: _native.TraceImporter) -> None:
    file = json.loads(exported(importer, "speedscope"))
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    assert {"outer", "in;ner", "leaf", "job"} == set(frames)
    for profile in file["profiles"]:
        assert profile["type"] == "sampled"
        assert profile["unit"] == "nanoseconds"
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
    thread = file["profiles"][0]
    assert thread["endValue"] == durations(importer)["outer"]


def test_pstats_has_calls_times_and_callers(
    importer: _native.TraceImporter, tmp_path: Path
) -> None:
    path = tmp_path / "out.pstats"
    path.write_bytes(exported(importer, "pstats"))
    found: Any = pstats.Stats(str(path))
    outer, inner = found.stats["~", 0, "outer"], found.stats["~", 0, "in;ner"]
    total = durations(importer)
    assert outer[:2] == inner[:2] == (2, 2)
    assert outer[3] == pytest.approx(total["outer"] / 1e9)
    assert outer[2] == pytest.approx((total["outer"] - total["in;ner"]) / 1e9)
    assert inner[4]["~", 0, "outer"][0] == 2
    found.calc_callees()


def fields(data: bytes) -> list[tuple[int, Any]]:
    """Decode a message: numbers, and the bytes of other fields."""
    return [
        (number, value if kind == 0 else data[value:end])
        for number, kind, value, _, end in read_fields(data)
    ]


def packed(data: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at, len(data))
        numbers.append(value)
    return numbers


def test_pprof_samples_name_their_functions(importer: _native.TraceImporter) -> None:
    profile = fields(gzip.decompress(exported(importer, "pprof")))
    texts = [value.decode() for number, value in profile if number == 6]
    assert texts[0] == ""
    types = [dict(fields(value)) for number, value in profile if number == 1]
    assert [(texts[t[1]], texts[t[2]]) for t in types] == [
        ("calls", "count"),
        ("time", "nanoseconds"),
    ]
    functions = {f[1]: texts[f[2]] for f in (dict(fields(v)) for n, v in profile if n == 5)}
    lines = {v[1]: dict(fields(v[4]))[1] for v in (dict(fields(x)) for n, x in profile if n == 4)}
    stacks = {}
    for number, value in profile:
        if number == 2:
            sample = dict(fields(value))
            names = tuple(functions[lines[place]] for place in packed(sample[1]))
            stacks[names] = packed(sample[2])
    assert set(stacks) == {("outer",), ("in;ner", "outer"), ("leaf", "in;ner", "outer"), ("job",)}
    assert stacks["leaf", "in;ner", "outer"] == [2, 0]
    total = durations(importer)
    assert stacks["outer",] == [2, total["outer"] - total["in;ner"]]


def test_firefox_samples_name_their_frames(importer: _native.TraceImporter) -> None:
    file = json.loads(exported(importer, "firefox"))
    thread = file["threads"][0]

    def names(stack: int | None) -> list[str]:
        if stack is None:
            return []
        prefix, frame = thread["stackTable"]["data"][stack]
        return [*names(prefix), thread["stringTable"][thread["frameTable"]["data"][frame][0]]]

    found = [names(sample[0]) for sample in thread["samples"]["data"]]
    assert ["outer", "in;ner", "leaf"] in found
    weights = sum(sample[3] for sample in thread["samples"]["data"])
    assert weights == pytest.approx(durations(importer)["outer"] / 1e6)


def test_events_of_an_empty_trace_are_empty() -> None:
    empty = import_trace(b"")
    assert json.loads(exported(empty, "chrome"))["traceEvents"] == []
    assert exported(empty, "jsonl") == b""


@pytest.mark.parametrize("target", sorted({*FORMATS} - {"chrome", "jsonl"}))
def test_profile_of_an_empty_trace_is_refused(target: str) -> None:
    with pytest.raises(EmptyTraceError):
        exported(import_trace(b""), target)


@pytest.mark.parametrize(
    ("name", "target"),
    [("a.speedscope.json", "speedscope"), ("A.PB.GZ", "pprof"), ("a.json", None), ("a.pb", None)],
)
def test_format_is_known_by_the_end_of_the_name(name: str, target: str | None) -> None:
    assert format_of_export(name) == target
