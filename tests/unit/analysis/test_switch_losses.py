"""Switches to threads that the kernel did not report are counted."""

from __future__ import annotations

from stretto.analysis.switch_losses import switch_losses
from stretto.analysis.trace_tables import import_trace

HEADER = "# tracer: nop\n#  TASK-PID  TGID  CPU#  TIMESTAMP  FUNCTION\n"
SWITCH = (
    " app-40    (   40) [00{}] ....  1.{:06}: sched_switch: prev_comm={} prev_pid={} "
    "prev_prio=120 prev_state={} ==> next_comm={} next_pid={} next_prio=120\n"
)
APP, IDLE = ("app", 40), ("swapper", 0)


def stops(us: int, cpu: int = 0) -> str:
    return SWITCH.format(cpu, us, *APP, "S", *IDLE)


def runs(us: int, cpu: int = 0) -> str:
    return SWITCH.format(cpu, us, *IDLE, "R", *APP)


def lines(*events: str) -> list[str]:
    return switch_losses(import_trace((HEADER + "".join(events)).encode()))


def test_cpu_that_becomes_idle_twice_has_run_an_unknown_thread() -> None:
    (line,) = lines(runs(1), stops(2), stops(3), runs(4), stops(5), stops(6), stops(7))
    assert line.startswith("3 switches of CPUs to threads are missing")


def test_each_cpu_counts_by_itself() -> None:
    assert lines(runs(1), runs(2, cpu=1), stops(3), stops(4, cpu=1), runs(5), stops(6)) == []


def test_events_that_two_data_sources_have_recorded_are_not_missing() -> None:
    assert lines(runs(1), stops(2), stops(2), runs(3), runs(3), stops(4), stops(4)) == []


def test_trace_without_scheduling_has_no_line() -> None:
    assert lines() == []
