"""Why threads were off the CPU: the states of threads, by the calls in which they were.

A trace with scheduling events (`stretto record --sched`) has the states of each thread. The stack
at the begin of a state is read from the slices of the thread that are open then, or else from its
last stack sample:

    slices    |-- main --------------------------|
                 |-- checkout -----------------|
                    |-- time.sleep ----------|
    states    Running|S ...............|R|Running       S, R: main > checkout > time.sleep

A state that begins before the slice in which the thread waits, because the slice begins at the
first sample that shows it, counts for the calls around it.

Only threads that have slices or samples count. The idle threads of CPUs have neither.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.stack_names import StackNames
from stretto.analysis.trace_tables import table_columns, table_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stretto import _native

SLEEPS, READY, BLOCKED = "sleeps", "waits for a CPU", "blocked in the kernel"
_REASONS = {"S": SLEEPS, "I": SLEEPS, "R": READY, "R+": READY, "D": BLOCKED}
"""Reasons by state; preempted threads (`R+`) wait for a CPU, too. Other states are left out."""

_INNERMOST = 2
"""How many calls say where a thread was."""

Stack = tuple[str, ...]
"""The names of calls, the innermost last."""


class OffCpu(NamedTuple):
    """The time that a thread was off the CPU, at one stack and for one reason.

    Attributes:
        thread: The thread's name.
        reason: SLEEPS, READY or BLOCKED.
        stack: Its calls, the innermost last; empty if they are unknown.
        number: How often.
        total: The time, in ns.
        longest: The longest time, in ns.
    """

    thread: str
    reason: str
    stack: Stack
    number: int
    total: int
    longest: int

    def where(self) -> str:
        """Return the names of the innermost calls, "-" if they are unknown."""
        return " > ".join(self.stack[-_INNERMOST:]) or "-"


def off_cpu(importer: _native.TraceImporter) -> list[OffCpu]:
    """Return where threads were off the CPU, by total time; empty without scheduling events."""
    states = _states(importer)
    if not states:
        return []
    stacks = _stacks_at(importer, states)
    found: dict[tuple[int, str, Stack], list[int]] = defaultdict(list)
    for utid, rows in states.items():
        if utid in stacks:
            for (_, duration, reason), stack in zip(rows, stacks[utid], strict=True):
                found[utid, reason, stack].append(duration)
    threads = table_rows(importer, "thread")
    totals = [
        OffCpu(
            threads[utid]["name"] or f"thread {threads[utid]['tid']}",
            reason,
            stack,
            len(durations),
            sum(durations),
            max(durations),
        )
        for (utid, reason, stack), durations in found.items()
    ]
    return sorted(totals, key=lambda each: -each.total)


def _states(importer: _native.TraceImporter) -> dict[int, list[tuple[int, int, str]]]:
    """Return, for each thread, begin, duration and reason of its times off the CPU."""
    found: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    columns = table_columns(importer, "__intrinsic_thread_state", "utid", "ts", "dur", "state")
    for utid, begin, duration, state in columns:
        if (reason := _REASONS.get(state)) and duration > 0:
            found[utid].append((begin, duration, reason))
    return {utid: sorted(rows) for utid, rows in found.items()}


def _stacks_at(
    importer: _native.TraceImporter, states: dict[int, list[tuple[int, int, str]]]
) -> dict[int, list[Stack]]:
    """Return the stack at the begin of each state, for each thread that has stacks."""
    slices, samples = _slices(importer), _samples(importer)
    found = {}
    for utid in states.keys() & (slices.keys() | samples.keys()):
        moments = [begin for begin, _, _ in states[utid]]
        by_slices = list(_open_slices(slices.get(utid, []), moments))
        by_samples = list(_last_samples(samples.get(utid, []), moments))
        found[utid] = [a or b for a, b in zip(by_slices, by_samples, strict=True)]
    return found


def _slices(importer: _native.TraceImporter) -> dict[int, list[tuple[int, int, str]]]:
    """Return begin, end and name of the slices on each thread's own track."""
    utids = [
        row["utid"] if row["parent_id"] is None else None
        for row in table_rows(importer, "__intrinsic_track")
    ]
    found: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for track, begin, duration, name in table_columns(
        importer, "slice", "track_id", "ts", "dur", "name"
    ):
        utid = utids[track]
        if utid is not None and duration:
            end = begin + duration if duration > 0 else 1 << 63  # Without an end: it is open.
            found[utid].append((begin, -end, name or ""))
    return {utid: [(b, -e, n) for b, e, n in sorted(rows)] for utid, rows in found.items()}


def _open_slices(slices: list[tuple[int, int, str]], moments: Iterable[int]) -> Iterator[Stack]:
    """Yield the names of the slices that are open at each moment; both are sorted by time."""
    is_open: list[tuple[int, str]] = []
    following = iter(slices)
    current = next(following, None)
    for moment in moments:
        while current is not None and current[0] <= moment:
            begin, end, name = current
            _close(is_open, begin)
            is_open.append((end, name))
            current = next(following, None)
        _close(is_open, moment)
        yield tuple(name for _, name in is_open)


def _close(is_open: list[tuple[int, str]], moment: int) -> None:
    while is_open and is_open[-1][0] <= moment:
        is_open.pop()


def _samples(importer: _native.TraceImporter) -> dict[int, list[tuple[int, Stack]]]:
    """Return time and stack of the samples of each thread."""
    columns = table_columns(importer, "perf_sample", "utid", "ts", "callsite_id")
    rows = [row for row in columns if row[2] is not None]
    if not rows:
        return {}
    stack_of = _cached(StackNames(importer))
    found: dict[int, list[tuple[int, Stack]]] = defaultdict(list)
    for utid, time, callsite in rows:
        found[utid].append((time, stack_of(callsite)))
    return {utid: sorted(each) for utid, each in found.items()}


def _cached(names: StackNames) -> Callable[[int], Stack]:
    known: dict[int, Stack] = {}

    def stack_of(callsite: int) -> Stack:
        if callsite not in known:
            functions = names.functions(callsite)
            known[callsite] = tuple(name for name, _ in reversed(functions))
        return known[callsite]

    return stack_of


def _last_samples(samples: list[tuple[int, Stack]], moments: Iterable[int]) -> Iterator[Stack]:
    """Yield the stack of the last sample before each moment; both are sorted by time."""
    at, last = 0, ()  # type: tuple[int, Stack]
    for moment in moments:
        while at < len(samples) and samples[at][0] <= moment:
            last = samples[at][1]
            at += 1
        yield last
