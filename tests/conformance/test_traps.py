"""Regression tests of earlier defects; Perfetto's trace processor reads all traces."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading

import pytest

import stretto
from stretto.protos.config import TraceConfig
from tests.support.recorded_events import config, record

CATEGORY = stretto.Category("test.traps")

SLICES = """
select s.name, s.depth, s.dur >= 0, coalesce(track.name, thread.name)
from slice s join track on s.track_id = track.id
left join thread_track on thread_track.id = s.track_id left join thread using (utid)
order by s.ts, s.depth
"""
ARGS = (
    "select key, coalesce(string_value, int_value, real_value) from args where key glob 'debug.*'"
)


def slices(trace):
    return [(name, depth) for name, depth, closed, _ in trace.query(SLICES) if closed]


def open_slices(trace):
    return [name for name, _, closed, _ in trace.query(SLICES) if not closed]


def in_thread(function):
    thread = threading.Thread(target=function, name="helper")
    thread.start()
    thread.join()


def good(oracle, recorded):
    trace = oracle(recorded.trace)
    assert trace.errors() == []
    return trace


def test_slice_objects_can_be_stored_and_reused(oracle):
    with record() as recorded:
        CATEGORY.slice("never entered")
        first, second = CATEGORY.slice("first"), CATEGORY.slice("second")
        with second, first, first:
            pass
        with first:
            pass
        moved = CATEGORY.slice("moved")
        moved.__enter__()
        in_thread(lambda: moved.__exit__(None, None, None))
    trace = good(oracle, recorded)
    assert open_slices(trace) == []
    assert slices(trace) == [("second", 0), ("first", 1), ("first", 2), ("first", 0), ("moved", 0)]


def test_slice_end_without_a_written_begin_closes_no_slice(oracle):
    CATEGORY.begin("before the session")
    early = CATEGORY.slice("early")
    early.__enter__()
    with record() as recorded, CATEGORY.slice("outer"):
        CATEGORY.end()
        CATEGORY.end()
        early.__exit__(None, None, None)
        with CATEGORY.slice("inner"):
            CATEGORY.end()
            CATEGORY.instant("instant")
    trace = good(oracle, recorded)
    assert open_slices(trace) == []
    assert slices(trace) == [("outer", 0), ("inner", 1), ("instant", 2)]


def test_session_that_starts_within_a_slice_omits_the_end_of_the_slice(oracle):
    with record() as whole, CATEGORY.slice("outer"):
        CATEGORY.begin("begun")
        with record() as late:
            with CATEGORY.slice("inner"):
                pass
            CATEGORY.end()
            CATEGORY.instant("instant")
    assert slices(good(oracle, whole)) == [
        ("outer", 0), ("begun", 1), ("inner", 2), ("instant", 1),
    ]  # fmt: skip
    assert slices(good(oracle, late)) == [("inner", 0), ("instant", 0)]


def test_trace_processor_reads_arguments_of_every_type(oracle):
    recursive: list[object] = [1]
    recursive.append(recursive)

    class Raises:
        def __repr__(self):
            raise ValueError

    with record() as recorded:
        CATEGORY.instant(
            "x", int=-5, big=2**63, huge=2**100, float=1.5, bool=True, none=None, text="äöü",
            long="x" * 10_000, bytes=b"\0\xff", nul="a\0b", lone="\ud800", empty=[], nothing={},
            list=[1, [2, {"k": 3}]], raises=Raises(), recursive=recursive,
        )  # fmt: skip
    found = dict(good(oracle, recorded).query(ARGS))
    assert found["debug.long"].endswith("... [truncated, 10000 characters]")
    del found["debug.long"]
    recursion = {key: found.pop(key) for key in list(found) if "recursive" in key}
    assert recursion["debug.recursive" + "[1]" * 16] == "... [nested too deep]"
    assert found == {
        "debug.int": -5, "debug.big": str(2**63), "debug.huge": str(2**100), "debug.float": 1.5,
        "debug.bool": 1, "debug.none": "None", "debug.text": "äöü",
        "debug.bytes": "b'\\x00\\xff'", "debug.nul": found["debug.nul"],
        "debug.lone": "\\ud800", "debug.empty": "[]", "debug.nothing": "{}",
        "debug.list[0]": 1, "debug.list[1][0]": 2, "debug.list[1][1].k": 3,
        "debug.raises": "<ValueError in repr>",
    }  # fmt: skip
    assert found["debug.nul"] in ("a\0b", "a")  # the trace processor may cut a string at NUL


def test_trace_processor_reads_an_event_with_a_hundred_arguments(oracle):
    arguments = {f"a{number:03}": number for number in range(100)}
    with record() as recorded, CATEGORY.slice("x", **arguments):
        pass
    found = dict(good(oracle, recorded).query(ARGS))
    assert found == {f"debug.{name}": value for name, value in arguments.items()}


def test_signal_handlers_destructors_and_garbage_collections_can_write_events(oracle):
    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            with CATEGORY.slice("del", value=[1]):
                pass

    def handler(_number, _frame):
        with CATEGORY.slice("signal", value=[1]):
            pass

    before, threshold = signal.signal(signal.SIGALRM, handler), gc.get_threshold()
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    gc.set_threshold(1)
    try:
        with record() as recorded:
            for number in range(500):
                Cycle()
                with CATEGORY.slice("main", number=number, values=[number]):
                    CATEGORY.instant("instant", number=number)
    finally:
        gc.set_threshold(*threshold)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    trace = good(oracle, recorded)
    assert open_slices(trace) == []
    counts = dict(trace.query("select name, count(*) from slice group by name"))
    assert counts["main"] == counts["instant"] == 500
    assert counts["del"] > 400
    parents = trace.query(
        "select count(*) from slice i join slice m on i.parent_id = m.id"
        " where i.name = 'instant' and m.name = 'main'"
        " and extract_arg(i.arg_set_id, 'debug.number') = extract_arg(m.arg_set_id, 'debug.number')"
    )
    assert parents == [(500,)]


def test_events_have_their_explicit_timestamps(oracle):
    now = stretto.now()
    with record() as recorded:
        CATEGORY.instant("now")
        CATEGORY.instant("past", timestamp=now - 1000)
        CATEGORY.instant("future", timestamp=now + 10**9)
        CATEGORY.instant("after")
        CATEGORY.begin("given", timestamp=now + 10, track=stretto.Track("given"))
        CATEGORY.end(timestamp=now + 25, track=stretto.Track("given"))
    trace = good(oracle, recorded)
    found = {name: (ts, dur) for name, ts, dur in trace.query("select name, ts, dur from slice")}
    assert found["past"][0] == now - 1000
    assert found["future"][0] == now + 10**9
    assert found["given"] == (now + 10, 15)
    assert now < found["now"][0] < found["after"][0] < now + 10**9


def test_flows_connect_slices_in_order(oracle):
    flow, other = stretto.Flow(), stretto.Flow()
    with record() as recorded:
        with CATEGORY.slice("a", flow=flow):
            pass
        in_thread(lambda: CATEGORY.instant("b", flow=[flow, other]))
        with CATEGORY.slice("c", terminating_flow=iter([flow])):
            pass
        with CATEGORY.slice("d", flow=other.id):
            pass
        with CATEGORY.slice("e", flow=flow):
            pass
    found = good(oracle, recorded).query(
        "select o.name, i.name from flow join slice o on slice_out = o.id"
        " join slice i on slice_in = i.id order by 1, 2"
    )
    assert found == [("a", "b"), ("b", "c"), ("b", "d")]


def test_deeply_nested_tracks_and_many_tracks_are_shown(oracle):
    deep = None
    for depth in range(5):
        deep = stretto.Track(f"depth {depth}", parent=deep)
    below_thread = stretto.Track("below", parent=stretto.thread_track())
    with record() as recorded:
        with CATEGORY.slice("deep", track=deep), CATEGORY.slice("below", track=below_thread):
            in_thread(lambda: CATEGORY.instant("from elsewhere", track=deep))
        for number in range(10_000):
            CATEGORY.instant("many", track=stretto.Track(f"track {number}"))
    trace = good(oracle, recorded)
    names, track = [], trace.query("select track_id from slice where name = 'deep'")[0][0]
    while track is not None:
        ((name, track),) = trace.query(f"select name, parent_id from track where id = {track}")
        names.append(name)
    assert names[:5] == [f"depth {depth}" for depth in reversed(range(5))]
    assert trace.query(
        "select count(distinct track.name) from slice join track on track_id = track.id"
        " where slice.name = 'many' and track.name glob 'track *'"
    ) == [(10_000,)]
    assert trace.query(
        "select p.name from slice e join slice p on e.parent_id = p.id"
        " where e.name = 'from elsewhere'"
    ) == [("deep",)]


def test_counters_accept_all_numbers(oracle):
    values = [0, -5, 2**40, 1.5, True, 10**400]
    with record() as recorded:
        for value in values:
            CATEGORY.counter("c", value)
        CATEGORY.counter("c", "5")  # ignored: not a number
    found = good(oracle, recorded).query("select value from counter order by ts")
    assert [value for (value,) in found] == [0, -5, 2**40, 1.5, 1, float("inf")]


def test_event_names_that_cannot_be_interned_are_written_inline_or_cut(oracle):
    names = ["x" * 257, "y" * 5000, "€" * 2000, "\ud800", "", "nul\0name"]
    with record() as recorded:
        for name in names * 2:
            CATEGORY.instant(name)
    found = [name for (name,) in good(oracle, recorded).query("select name from slice order by ts")]
    assert found[:4] == ["x" * 257, "y" * 4096, "€" * 1365, "\\ud800"]
    assert found[6:] == found[:6]


def test_renamed_thread_has_its_last_name(oracle):
    def work():
        CATEGORY.instant("a")
        threading.current_thread().name = "renamed"
        for _ in range(5000):
            CATEGORY.instant("b")

    with record() as recorded:
        in_thread(work)
    trace = good(oracle, recorded)
    assert trace.query(
        "select thread.name, count(*) from slice join thread_track on track_id = thread_track.id"
        " join thread using (utid) group by 1"
    ) == [("renamed", 5001)]
    assert trace.query("select distinct pid from thread join process using (upid) where pid") == [
        (os.getpid(),)
    ]


def test_interleaved_tasks_and_generators_have_nested_slices(oracle):
    async def work(name):
        with CATEGORY.slice(name):
            for step in range(20):
                with CATEGORY.slice(f"{name} {step}"):
                    await asyncio.sleep(0)

    async def main():
        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(work(f"task {number}"))

    with record() as recorded:
        asyncio.run(main())
    trace = good(oracle, recorded)
    assert open_slices(trace) == []
    assert trace.query("select count(*) from slice where depth = 1") == [(100,)]
    assert trace.query(
        "select count(*) from slice c join slice p on c.parent_id = p.id"
        " where c.name not glob p.name || ' *'"
    ) == [(0,)]


def wrapped(oracle, run):
    """Call `run` in a session with a small ring that wraps many times; return the trace."""
    made = config()
    made.buffers[0].size_kb = 512
    with stretto.TracingSession(made) as session:
        run()
        session.stop()
        trace = oracle(session.read())
    provoked = {"traced_buf_chunks_overwritten"}
    assert {name for name, *_ in trace.errors()} <= provoked
    return trace


def test_all_events_have_names_although_the_ring_has_wrapped(oracle):
    """One thread fills the ring buffer ten times; another thread writes between the fills."""
    track = stretto.Track("slow track", parent=stretto.Track("its parent"))
    turn, flooded = threading.Barrier(2), threading.Barrier(2)

    def slow():
        for number in range(10):
            turn.wait(30)
            with CATEGORY.slice("slow", number=number):
                CATEGORY.instant("slow on track", track=track, number=number)
            CATEGORY.counter("slow counter", number)
            flooded.wait(30)

    def run():
        thread = threading.Thread(target=slow, name="the slow one")
        thread.start()
        for _ in range(10):
            turn.wait(30)
            flooded.wait(30)
            for number in range(20_000):
                with CATEGORY.slice("flood", number=number):
                    pass
        thread.join()
        turn.abort()
        with CATEGORY.slice("slow", number=10, last=True):
            pass
        in_thread(lambda: CATEGORY.instant("slow on track", track=track, number=10))

    trace = wrapped(oracle, run)
    assert trace.query("select count(*) from slice where name is null or category is null") == [
        (0,)
    ]
    assert trace.query(
        "select distinct track.name, parent.name from slice join track on track_id = track.id"
        " join track parent on track.parent_id = parent.id where slice.name = 'slow on track'"
    ) == [("slow track", "its parent")]
    flood = trace.query(
        "select count(*), min(dur) >= 0, max(depth), count(distinct track_id)"
        " from slice where name = 'flood'"
    )
    assert flood[0][0] > 1000
    assert flood[0][1:] == (1, 0, 1)


def test_each_of_two_sessions_records_only_the_categories_of_its_config(oracle):
    other = stretto.Category("test.traps.other", tags=["slow"])
    with (
        record() as default,
        record(enabled=["test.traps.other"], disabled=["*"]) as only_other,
        CATEGORY.slice("a"),
        other.slice("b"),
        CATEGORY.slice("c"),
    ):
        pass
    assert slices(good(oracle, default)) == [("a", 0), ("c", 1)]
    assert slices(good(oracle, only_other)) == [("b", 0)]


@pytest.mark.parametrize("fill", ["RING_BUFFER", "DISCARD"])
def test_traces_of_many_short_sessions_are_readable(oracle, fill):
    """Threads that outlive sessions start a new packet sequence in each session."""
    made = config()
    made.buffers[0].fill_policy = getattr(TraceConfig.BufferConfig.FillPolicy, fill)
    for number in range(20):
        with stretto.TracingSession(made) as session:
            with CATEGORY.slice("x", number=number):
                pass
            session.stop()
            data = session.read()
    trace = oracle(data)
    assert trace.errors() == []
    assert trace.query(ARGS) == [("debug.number", 19)]
