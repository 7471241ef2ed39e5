"""The figures of the questions that have names."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from stretto.analysis import TraceProcessor
from stretto.analysis.questions import QUESTIONS, no_answer, query_of
from stretto.analysis.trace_processor import DUCKDB, ENGINES
from stretto.protos.trace import (
    CounterDescriptor,
    ProcessDescriptor,
    ThreadDescriptor,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

# What the engines return depends on their versions, not on CPython's.
pytestmark = pytest.mark.once

PID = 10
MAIN, WORKER, OTHER, LOOP, LANE, TASK, CPU_TIME = range(1, 8)
THREADS = {MAIN: "main", WORKER: "worker", OTHER: "other"}
UNFINISHED = None


def descriptors() -> Iterator[TrackDescriptor]:
    for track, name in THREADS.items():
        thread = ThreadDescriptor(pid=PID, tid=PID + track, thread_name=name)
        yield TrackDescriptor(uuid=track, thread=thread)
    yield TrackDescriptor(uuid=LOOP, parent_uuid=MAIN, name="event loop")
    yield TrackDescriptor(uuid=LANE, process=ProcessDescriptor(pid=PID, process_name="app"))
    yield TrackDescriptor(uuid=TASK, parent_uuid=LANE, name="task")


def trace_of(*slices: tuple[int, str, int, int | None]) -> bytes:
    """Return a trace with slices: track, name, begin and end."""
    packets = [TracePacket(track_descriptor=each) for each in descriptors()]
    begin, end = TrackEvent.Type.TYPE_SLICE_BEGIN, TrackEvent.Type.TYPE_SLICE_END
    events = [
        (at, TrackEvent(type=kind, track_uuid=track, name=name))
        for track, name, first, last in slices
        for kind, at in ((begin, first), (end, last))
        if at is not None
    ]
    for at, event in sorted(events, key=lambda each: each[0]):
        packets.append(TracePacket(timestamp=at, track_event=event, trusted_packet_sequence_id=1))
    return Trace(packet=packets).encode()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == DUCKDB:
        pytest.importorskip("duckdb")
        pytest.importorskip("sqlglot")
    return str(request.param)


def ask(engine: str, trace: bytes, question: str, name: str = "") -> list[tuple[Any, ...]]:
    with TraceProcessor(trace, engine=engine) as processor:
        return list(processor.query(query_of(question, name)).fetchall())


def busy(engine: str, *slices: tuple[int, str, int, int | None]) -> list[tuple[Any, ...]]:
    """Return the name, the number of slices and the time of each thread."""
    rows = ask(engine, trace_of(*slices), "threads")
    return [(thread, number, time) for _, thread, _, number, time in rows]


def meanwhile(
    engine: str, name: str, *slices: tuple[int, str, int, int | None]
) -> list[tuple[Any, ...]]:
    """Return the thread, the name, the calls and the overlap of what other threads did."""
    rows = ask(engine, trace_of(*slices), "meanwhile", name)
    return [(thread, *rest) for _, thread, _, *rest in rows]


def test_thread_is_busy_on_its_own_track(engine: str) -> None:
    slices = (MAIN, "a", 100, 200), (MAIN, "b", 110, 150), (MAIN, "a", 300, 350)
    beside = (LOOP, "blocked in a", 120, 190), (TASK, "a", 100, 400)
    assert busy(engine, *slices, *beside) == [("main", 2, 150)]


def test_times_of_spans_that_overlap_count_once(engine: str) -> None:
    spans = "(1, 0, 10), (1, 5, 10), (1, 6, 2), (1, 15, 5), (1, 30, 1), (1, 30, 1), (2, 7, 3)"
    sql = (
        "include perfetto module slices._covered; with spans(key, ts, dur) as "
        f"(values {spans}) select * from _merged_spans!(spans) order by key, ts"
    )
    with TraceProcessor(trace_of(), engine=engine) as processor:
        rows = processor.query(sql).fetchall()
    assert rows == [(1, 0, 20, 4), (1, 30, 1, 2), (2, 7, 3, 1)]


def test_call_that_lasts_for_two_slices_is_one_call_of_both_times(engine: str) -> None:
    slices = (MAIN, "x", 100, 200), (MAIN, "x", 300, 400), (WORKER, "hold", 150, 320)
    assert meanwhile(engine, "x", *slices) == [("worker", "hold", 1, 70)]


def test_moment_in_which_a_slice_runs_twice_counts_once(engine: str) -> None:
    recursive = (MAIN, "x", 100, 200), (MAIN, "x", 110, 150)
    also = (WORKER, "x", 150, 250), (OTHER, "o", 120, 300)
    assert meanwhile(engine, "x", *recursive, *also) == [
        ("other", "o", 1, 130),
        ("main", "x", 1, 50),
        ("worker", "x", 1, 50),
    ]


def test_random_slices_overlap_as_when_each_moment_is_looked_at(engine: str) -> None:
    random = Random(1)
    slices = [
        (track, random.choice("xyz"), at + random.randrange(5), at + random.randrange(5, 15))
        for track in THREADS
        for at in range(0, 300, 15)
    ]
    overlaps: Counter[tuple[str, str]] = Counter()
    for track, name, begin, end in slices:
        ran = {
            moment
            for other, asked, first, last in slices
            if asked == "x" and other != track
            for moment in range(max(begin, first), min(end, last))
        }
        overlaps[THREADS[track], name] += len(ran)
    rows = meanwhile(engine, "x", *slices)
    assert {(thread, name): overlap for thread, name, _, overlap in rows} == overlaps


def test_tracks_of_the_same_thread_are_left_out(engine: str) -> None:
    slices = (MAIN, "main", 50, 400), (MAIN, "x", 100, 200), (LOOP, "blocked in x", 100, 200)
    in_lane = (TASK, "x", 60, 250)
    assert meanwhile(engine, "x", *slices, in_lane) == []
    assert meanwhile(engine, "x", *slices, in_lane, (OTHER, "o", 0, 300)) == [
        ("other", "o", 1, 100)
    ]
    assert meanwhile(engine, "x", in_lane, (OTHER, "o", 0, 200)) == [("other", "o", 1, 140)]
    assert meanwhile(engine, "blocked*", *slices) == []


def test_unfinished_slices_last_to_the_end(engine: str) -> None:
    slices = (MAIN, "open", 100, UNFINISHED), (MAIN, "inner", 150, UNFINISHED)
    trace = trace_of(*slices, (WORKER, "o", 50, 300), (WORKER, "last", 400, 500))
    longest = ask(engine, trace, "longest")
    assert [(row[2], row[1]) for row in longest] == [
        ("open", 400),
        ("inner", 350),
        ("o", 250),
        ("last", 100),
    ]
    assert ask(engine, trace, "p99", "open") == [("open", 1, 400, 400, 400, 400)]
    assert ask(engine, trace, "inside", "open") == [("inner", 1, 350, 350)]
    assert ask(engine, trace, "callers", "inner") == [("open", 1, 350)]
    assert [row[1:] for row in ask(engine, trace, "threads")] == [
        ("main", PID + MAIN, 1, 400),
        ("worker", PID + WORKER, 2, 350),
    ]
    assert [row[3:] for row in ask(engine, trace, "meanwhile", "o")] == [("open", 1, 200)]
    assert [row[3:] for row in ask(engine, trace, "meanwhile", "open")] == [
        ("o", 1, 200),
        ("last", 1, 100),
    ]


def test_percentiles_have_the_digits_that_both_engines_agree_on(engine: str) -> None:
    slices = [(MAIN, "x", 1000 * i, 1000 * i + dur) for i, dur in enumerate((1, 8, 11))]
    assert ask(engine, trace_of(*slices), "p99", "x") == [("x", 3, 8, 10.4, 10.94, 11)]


def test_all_questions_have_answers(engine: str) -> None:
    with TraceProcessor(trace_of((MAIN, "it's", 1, 2)), engine=engine) as processor:
        for name in QUESTIONS:
            assert processor.query(query_of(name, "it's")).columns, name


def test_name_that_no_slice_has_is_told(engine: str) -> None:
    with TraceProcessor(trace_of((MAIN, "handle", 1, 2)), engine=engine) as processor:
        assert no_answer(processor, "inside", "h*e") == ""
        assert no_answer(processor, "inside", "it's") == 'no slice has the name "it\'s".'
        assert no_answer(processor, "inside", "Handel") == (
            "no slice has the name 'Handel'. Did you mean handle?"
        )
        assert no_answer(processor, "longest", "") == ""


def test_missing_cpu_times_are_told(engine: str) -> None:
    with TraceProcessor(trace_of((MAIN, "f", 1, 2)), engine=engine) as processor:
        assert "--cpu" in no_answer(processor, "while-waiting", "f")
    with TraceProcessor(trace_with_cpu_times(("f", 0, 0), ("", 9, 5)), engine=engine) as processor:
        assert no_answer(processor, "while-waiting", "f") == ""


def trace_with_cpu_times(*events: tuple[str, int, int]) -> bytes:
    """Return a trace with begins of slices and, without a name, ends: name, time and CPU time."""
    counter = CounterDescriptor(type=CounterDescriptor.BuiltinCounterType.COUNTER_THREAD_TIME_NS)
    packets = [TracePacket(track_descriptor=each) for each in descriptors()]
    track = TrackDescriptor(uuid=CPU_TIME, parent_uuid=MAIN, counter=counter)
    packets.append(TracePacket(track_descriptor=track))
    begin, end = TrackEvent.Type.TYPE_SLICE_BEGIN, TrackEvent.Type.TYPE_SLICE_END
    for name, at, cpu in events:
        event = TrackEvent(
            type=begin if name else end,
            track_uuid=MAIN,
            name=name or None,
            extra_counter_track_uuids=[CPU_TIME],
            extra_counter_values=[cpu],
        )
        packets.append(TracePacket(timestamp=at, track_event=event, trusted_packet_sequence_id=1))
    return Trace(packet=packets).encode()


def test_wait_in_a_recursive_function_is_counted_once(engine: str) -> None:
    """f { f { sleep } }: the sleep is in both calls of f."""
    trace = trace_with_cpu_times(
        ("f", 0, 0), ("f", 10, 10), ("sleep", 20, 20), ("", 80, 21), ("", 90, 31), ("", 100, 41)
    )
    waited = [("f", 1, 59, 80), ("sleep", 1, 59, 60)]
    assert ask(engine, trace, "while-waiting", "f") == waited
    assert ask(engine, trace, "while-waiting", "*") == waited


def test_mean_of_a_counter_is_over_time(engine: str) -> None:
    """It is 0 for 10 ns, and 10 for 90 ns; the value at its end lasts no time."""
    trace = trace_with_cpu_times(("a", 0, 0), ("", 10, 10), ("b", 100, 0))
    [row] = ask(engine, trace, "counters")
    assert row == ("thread_time", 3, 0, 9, 10, "ns")
