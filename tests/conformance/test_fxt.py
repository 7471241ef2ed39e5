"""Perfetto's trace processor reads equal content from traces before and after FXT conversion."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto import flows
from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.records import Thread
from stretto.cli.main import main
from tests.conformance.test_flows import make_random_calls
from tests.support import framed_rpc
from tests.support.fxt_traces import CLIENT, SERVER, FxtTrace, exported, imported
from tests.support.oracle import FOLDER, Oracle, missing
from tests.support.recorded import record as record_program
from tests.support.recorded_events import record
from tests.support.traced_greeter import TracedGreeter, flows_installed

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

SLICES = """
select ts, dur, depth, ifnull(category, ''), ifnull(name, '') from slice order by 1, 2, 3, 4, 5
"""
ARROWS = """
select o.ts, o.dur, o.name, i.ts, i.dur, i.name
from flow join slice o on o.id = slice_out join slice i on i.id = slice_in order by 1, 2, 3, 4, 5, 6
"""
ARGUMENTS = """
select s.ts, ifnull(s.name, ''), replace(a.key, 'debug.', ''), a.display_value
from slice s join args a using (arg_set_id)
where a.key not like 'legacy_event.%' order by 1, 2, 3, 4
"""
PLACES = """
select distinct p.pid, p.name, t.name
from slice s join thread_track on thread_track.id = s.track_id join thread t using (utid)
left join process p using (upid) order by 1, 2, 3
"""
COUNTERS = """
select c.ts, c.value, substr(t.name, 1, 5) from counter c join counter_track t on t.id = c.track_id
order by 1, 2
"""


def seen(trace: bytes, *queries: str) -> list[list[tuple[Any, ...]]]:
    oracle = Oracle(trace)
    assert oracle.errors() == []
    return [oracle.query(query) for query in queries]


def assert_same(trace: bytes, *queries: str) -> list[list[tuple[Any, ...]]]:
    """Return the results of queries; check that conversion to FXT and back changes none of them."""
    there, outcome = exported(trace)
    assert outcome.left_out == {}
    back, outcome = imported(there)
    assert outcome.left_out == {}
    wanted = seen(trace, *queries)
    assert seen(there, *queries) == wanted
    assert seen(back, *queries) == wanted
    return wanted


@pytest.mark.parametrize("seed", range(2))
def test_random_calls_are_equal_after_conversion(seed: int) -> None:
    draw = random.Random(seed)
    with flows_installed():
        greeter = TracedGreeter()
        with record() as recorded:
            make_random_calls(greeter, draw, 200)
            greeter.run()
        greeter.close()
        assert flows.stats() == {}
    slices, arrows, arguments = assert_same(recorded.trace, SLICES, ARROWS, ARGUMENTS)
    assert len(slices) > 200
    assert len(arrows) > 100
    assert {key for _, _, key, _ in arguments} >= {"role", "method", "kind", "txid"}


def test_calls_between_two_processes_are_equal_after_conversion(tmp_path: Path) -> None:
    run = record_program(
        tmp_path / "trace.pftrace",
        "--buffer=64mb",
        "--no-functions",
        "--",
        framed_rpc.__file__,
        str(tmp_path / "sock"),
        "2000",
        "100",
        PYTHONPATH=":".join(sys.path),
    )
    assert run.status == 0, run.stderr
    there, outcome = exported(run.trace)
    assert outcome.left_out.keys() <= {
        "ends of flows that have no beginning",
        "packets with process_tree",
    }
    wanted = seen(run.trace, SLICES, ARROWS, ARGUMENTS, PLACES)
    assert len(wanted[1]) > 1000
    assert len(wanted[3]) > 2
    assert seen(there, SLICES, ARROWS, ARGUMENTS, PLACES) == wanted
    assert seen(imported(there)[0], SLICES, ARROWS, ARGUMENTS, PLACES) == wanted


def test_arguments_counters_and_tracks_are_equal_after_conversion() -> None:
    category = stretto.Category("test.fxt")
    task = stretto.Track("a task", parent=stretto.thread_track())
    with record() as recorded:
        for number in range(100):
            with category.slice("frame", number=number, text=f"é{number}", flow=number + 1):
                category.instant("nested", value={"list": [1, 0.5, {"yes": True}]}, none=None)
                category.begin("step", track=task, terminating_flow=number + 1)
                category.instant("in it", track=task, large=1 << 40, negative=-1)
                category.end(track=task)
                category.counter("count", number)
                category.counter("ratio", number / 7)
    slices, arrows, arguments, counters = assert_same(
        recorded.trace, SLICES, ARROWS, ARGUMENTS, COUNTERS
    )
    assert [len(each) for each in (slices, arrows, counters)] == [400, 100, 200]
    assert ("value.list[2].yes", "true") in {row[2:] for row in arguments}


def test_argument_names_with_dots_and_brackets_are_equal_after_conversion() -> None:
    category = stretto.Category("test.fxt")
    odd = {"a.b": 1, "a": {"b": 2}, "a[0]": 3, "": 4, 'q"\\': 5}
    nested = {"a": {"": "empty", "x.y": 1, "x[0]": [["in"]]}}
    with record() as recorded:
        category.instant("http", args={"http.method": "GET"})
        category.instant("odd", args=odd)
        category.instant("lists", args={"a.b": 1, "a": [[1, 2], [3]]})
        category.instant("nested", args={"any": nested})
    there, _ = exported(recorded.trace)
    wanted = seen(recorded.trace, SLICES, ARGUMENTS)
    assert seen(imported(there)[0], SLICES, ARGUMENTS) == wanted
    assert {row[2] for row in wanted[1]} >= {"http_method", "a.b", "a_b", "a[0][1]", "any.a.x_y"}
    shown = {row[2] for row in seen(there, ARGUMENTS)[0]}
    assert shown >= {'"http.method"', '"a.b"', "a.b", "a[0][1]", 'any.a."x[0]"[0][0]', '""'}


def test_empty_names_and_arrows_within_one_thread_are_equal_after_conversion() -> None:
    category = stretto.Category("test.fxt")
    with record() as recorded:
        category.instant("")
        with category.slice("", flow=5, terminating_flow=5):
            category.instant("again", flow=5)
        category.instant("over", flow=5, terminating_flow=5)
    slices, arrows = assert_same(
        recorded.trace, "select ts, depth, name from slice order by 1, 2", ARROWS
    )
    assert [name for *_, name in slices] == ["", "", "again", "over"]
    assert [(row[2], row[5]) for row in arrows] == [("", ""), ("again", "over"), ("over", "over")]


class TestFuchsiaTraces:
    """Tests with FXT records that only Fuchsia's trace providers write."""

    def test_call_with_four_flow_points_keeps_its_arrows_after_conversion(self) -> None:
        trace = FxtTrace()
        trace.event(fxt.DURATION_BEGIN, 100, CLIENT, "call", ordinal=5)
        trace.event(fxt.FLOW_BEGIN, 101, CLIENT, "flow", number=7)
        trace.slice(110, 150, SERVER, "handle", [(fxt.FLOW_STEP, 7)])
        trace.slice(140, 140, SERVER, "reply", [(fxt.FLOW_STEP, 7)])
        trace.slice(170, 170, CLIENT, "replied", [(fxt.FLOW_END, 7)])
        trace.event(fxt.DURATION_END, 180, CLIENT)
        data, _ = imported(trace.data)
        wanted = seen(trace.data, ARROWS, PLACES)
        assert [(row[2], row[5]) for row in wanted[0]] == [
            ("call", "handle"),
            ("handle", "reply"),
            ("reply", "replied"),
        ]
        assert seen(data, ARROWS, PLACES) == wanted

    def test_kernel_messages_keep_their_arrows_after_conversion(self) -> None:
        trace = FxtTrace()
        for start in range(100, 1000, 100):
            number = start << 32 | 1 << 31 | 3
            for time, thread, kind in (
                (start, CLIENT, fxt.FLOW_BEGIN),
                (start + 10, SERVER, fxt.FLOW_STEP),
                (start + 50, SERVER, fxt.FLOW_STEP),
                (start + 70, CLIENT, fxt.FLOW_END),
            ):
                trace.message(time, thread, (kind, number), start)
        data, _ = imported(trace.data)
        wanted = seen(trace.data, ARROWS)[0]
        assert len(wanted) == 27
        # Compare only times: the names of messages differ, because they contain ordinals.
        times = [(row[0], row[3]) for row in wanted]
        assert [(row[0], row[3]) for row in seen(data, ARROWS)[0]] == times

    @pytest.mark.parametrize("seed", range(3))
    def test_random_slices_and_flows_are_equal_after_conversion(self, seed: int) -> None:
        """The record of each slice is written at the slice's end; some slices have flow points."""
        draw = random.Random(seed)
        trace = FxtTrace()
        threads = [Thread(10 * process, 10 * process + 1) for process in (1, 2, 3)]
        time = 0
        for number in range(1, 80):
            chain = [draw.choice(threads) for _ in range(draw.randrange(2, 5))]
            for at, thread in enumerate(chain):
                time += draw.randrange(1, 9)
                start = time
                kind = fxt.FLOW_STEP if at else fxt.FLOW_BEGIN
                kind = fxt.FLOW_END if at + 1 == len(chain) else kind
                time += draw.randrange(1, 5)
                trace.event(kind, time, thread, "flow", number=number)
                if draw.random() < 0.5:
                    trace.event(fxt.INSTANT, time + 1, thread, "instant", number=0)
                time += draw.randrange(2, 9)
                trace.event(fxt.DURATION_COMPLETE, start, thread, f"{number}.{at}", end=time, x=at)
        data, outcome = imported(trace.data)
        assert outcome.left_out == {}
        wanted = seen(trace.data, SLICES, ARROWS, ARGUMENTS)
        assert len(wanted[1]) > 100
        assert seen(data, SLICES, ARROWS, ARGUMENTS) == wanted

    def test_flow_point_written_before_its_slice_belongs_to_the_slice_after_conversion(
        self,
    ) -> None:
        trace = FxtTrace()
        trace.event(fxt.FLOW_BEGIN, 1, CLIENT, "flow", number=7)
        trace.event(fxt.DURATION_COMPLETE, 1, CLIENT, "sends", end=5)
        trace.slice(3, 4, SERVER, "receives", [(fxt.FLOW_END, 7)])
        # The trace processor loses this arrow, because it doesn't reorder records with equal times.
        assert Oracle(trace.data).query(ARROWS) == []
        (arrows,) = seen(imported(trace.data)[0], ARROWS)
        assert [(row[2], row[5]) for row in arrows] == [("sends", "receives")]

    def test_async_operations_are_equal_after_conversion(self) -> None:
        trace = FxtTrace()
        trace.event(fxt.ASYNC_BEGIN, 1, CLIENT, "load", number=5)
        trace.event(fxt.ASYNC_BEGIN, 3, CLIENT, "part", number=5)
        trace.event(fxt.ASYNC_INSTANT, 4, CLIENT, "half", number=5, x=1)
        trace.event(fxt.ASYNC_END, 5, Thread(10, 12), "part", number=5)
        trace.event(fxt.ASYNC_END, 6, CLIENT, "load", number=5)
        data, _ = imported(trace.data)
        assert seen(data, SLICES, ARGUMENTS) == seen(trace.data, SLICES, ARGUMENTS)

    def test_arguments_of_all_types_are_equal_after_conversion(self) -> None:
        trace = FxtTrace()
        trace.event(
            fxt.INSTANT, 1, CLIENT, "x", a=1, b=-1, c=1 << 60, d=0.5, e="text", f=True, g=None
        )
        data, _ = imported(trace.data)
        assert seen(data, ARGUMENTS) == seen(trace.data, ARGUMENTS)


def test_text_proto_equals_the_output_of_traceconv(tmp_path: Path) -> None:
    category = stretto.Category("test.fxt")
    with record() as recorded:
        for number in range(50):
            with category.slice("frame", number=number, text='é "\n', flow=number + 1):
                category.instant("nested", terminating_flow=number + 1, value=[0.1, {"a": None}])
    source, text, back = (str(tmp_path / name) for name in ("a.pftrace", "a.txt", "b.pftrace"))
    Path(source).write_bytes(recorded.trace)
    driver = str(FOLDER / "trace_processor.py")
    subprocess.run([sys.executable, driver, "conv", "text", source, text], check=True)
    assert main(["convert", text, back]) == 0
    queries = (SLICES, ARROWS, ARGUMENTS)
    assert seen(Path(back).read_bytes(), *queries) == seen(recorded.trace, *queries)
    # Stretto's text has the same lines as traceconv's.
    ours = str(tmp_path / "ours.pbtxt")
    assert main(["convert", source, ours]) == 0
    shown = [line.strip() for line in Path(ours).read_text().splitlines()]
    assert "type: TYPE_SLICE_BEGIN" in shown
    known = {
        line for line in map(str.strip, Path(text).read_text().splitlines()) if "_uuid" in line
    }
    assert known <= set(shown)
