"""The times of threads off the CPU are told by reason and by the calls that were open."""

from __future__ import annotations

from stretto.analysis.off_cpu import BLOCKED, READY, SLEEPS, OffCpu, _last_samples, off_cpu
from stretto.analysis.trace_tables import import_trace

SWITCH = "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={} ==> "
SWITCH += "next_comm={} next_pid={} next_prio=120"
APP, IDLE = ("app", 40), ("swapper/0", 0)


def line(ms: int, event: str) -> str:
    return f" app-40    (   40) [000] ....  1.{ms * 1000:06}: {event}"


def stops(ms: int, state: str) -> str:
    return line(ms, SWITCH.format(*APP, state, *IDLE))


def runs(ms: int) -> str:
    return line(ms, SWITCH.format(*IDLE, "R", *APP))


def mark(ms: int, text: str) -> str:
    return line(ms, f"tracing_mark_write: {text}")


def found(*lines: str) -> list[OffCpu]:
    text = "\n".join(["# tracer: nop", "#  TASK-PID  TGID  CPU#  TIMESTAMP  FUNCTION", *lines, ""])
    rows = off_cpu(import_trace(text.encode()))
    # The importer computes the times of text, some of which are 1 ns more.
    return [row._replace(total=ms(row.total), longest=ms(row.longest)) for row in rows]


def ms(ns: int) -> int:
    return round(ns / 1_000_000)


def test_states_count_for_the_calls_that_are_open_at_their_begin() -> None:
    waking = "sched_waking: comm=app pid=40 prio=120 target_cpu=000"
    rows = found(
        runs(1),
        mark(2, "B|40|main"),
        mark(3, "B|40|time.sleep"),
        stops(4, "S"),
        line(14, waking),
        runs(16),
        mark(17, "E|40"),
        stops(18, "D"),
        runs(21),
        mark(22, "B|40|time.sleep"),
        stops(23, "S"),
        runs(28),
        mark(29, "E|40"),
        mark(30, "E|40"),
        stops(31, "R"),
        runs(32),
        stops(33, "S"),
    )
    assert rows == [
        OffCpu("app", SLEEPS, ("main", "time.sleep"), 2, 15, 10),
        OffCpu("app", BLOCKED, ("main",), 1, 3, 3),
        OffCpu("app", READY, ("main", "time.sleep"), 1, 2, 2),
        OffCpu("app", READY, (), 1, 1, 1),
    ]


def test_threads_without_calls_are_left_out() -> None:
    assert found(runs(1), stops(2, "S"), runs(5), stops(6, "S")) == []


def test_trace_without_scheduling_has_no_rows() -> None:
    assert found(mark(1, "B|40|main"), mark(2, "E|40")) == []


def test_last_sample_before_a_moment_gives_the_stack() -> None:
    samples = [(10, ("a",)), (20, ("a", "b"))]
    assert list(_last_samples(samples, [5, 10, 15, 30])) == [(), ("a",), ("a",), ("a", "b")]
