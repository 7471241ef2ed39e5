"""Slices and counts of auto detail, for programs whose calls take known times."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.recorded import record
from tests.support.timed_program import PROGRAMS, Looks, Trace, recorded

SMALL_MB = 8 if sys.version_info >= (3, 12) else 3
"""A size of the trace that 50 threads fill. On 3.11 only samples find calls: they find fewer."""

# Shrinking a failing example would take too long: each program runs for up to 1 s.
without_shrinking = settings(
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("auto")


@settings(without_shrinking, max_examples=3)
@given(program=PROGRAMS)
def test_long_calls_are_slices_in_their_callers(folder: Path, program: dict[str, Any]) -> None:
    recorded(folder, program).check_long_calls()


@pytest.mark.thorough
@settings(without_shrinking, max_examples=examples(8))
@given(program=PROGRAMS)
def test_long_calls_are_slices_in_their_callers_in_many_programs(
    folder: Path, program: dict[str, Any]
) -> None:
    recorded(folder, program).check_long_calls()


def test_call_may_have_begun_before_calls_that_returned_before_its_first_sample(
    folder: Path,
) -> None:
    inner = [("g1", 1, 0.0003, [], "burn"), ("g0", 1, 0.03, [], "sleep")]
    program = {
        "warm": ["f0", "body"],
        "count": 10_000,
        "steps": [("f0", 0, 0.0, inner, "burn")] * 10,
        "threads": [],
    }
    recorded(folder, program).check_long_calls()


def test_slow_calls_of_a_function_that_was_fast_a_hundred_thousand_times_are_slices(
    folder: Path,
) -> None:
    program = {
        "warm": ["f0", "body"],
        "count": 100_000,
        "steps": [("f0", 0, 0.1, [], "burn"), ("f0", 0, 0.1, [], "sleep")],
        "threads": [],
    }
    trace = recorded(folder, program)
    assert len(trace.long) == 2
    trace.check_long_calls()


AROUND_GENERATORS = """
import time
def numbers(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        yield from range(100)
def outer(seconds):
    for _ in numbers(seconds):
        pass
for _ in range(3):
    outer(0.2)
"""


def test_call_that_iterates_over_a_generator_is_one_slice(folder: Path) -> None:
    """Often the generator is suspended while the stack is read: then it has no caller any more."""
    script = folder / "around_generators.py"
    script.write_text(AROUND_GENERATORS)
    trace = Trace(record(folder / "around_generators.pftrace", "--auto", str(script)))
    assert [s.name for s in trace.slices].count("outer") == 3


@pytest.mark.thorough
def test_calls_of_fifty_threads_above_a_raised_threshold_are_slices(folder: Path) -> None:
    """The calls of 50 threads fill half of the trace's size, so the threshold rises."""
    step = ("f0", 0, 0.026, [("g1", 1, 0.0003, [], "sleep")] * 10, "sleep")
    program = {"warm": [], "count": 0, "steps": [step], "threads": [[step] * 100] * 50}
    trace = recorded(folder, program, "--size", f"{SMALL_MB}mb")
    assert len(trace.run.trace) <= SMALL_MB << 20
    assert "less detail: from" in trace.run.stderr
    rises = [name for name in trace.names() if name.startswith("from here on, calls shorter")]
    units = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
    words = [name.split() for name in rises]
    threshold_ns = max(int(each[-6]) * units[each[-5]] for each in words)
    trace.check_long_calls(threshold_ns)


needs_events = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="only CPython 3.12 and later report calls and count them"
)

COUNTED = """
import json, sys, time
now = time.perf_counter_ns
def wait(seconds):
    if seconds: time.sleep(seconds)  # sleep: the recorded duration of the call
def f0(seconds): wait(seconds)
def f1(seconds): wait(seconds)
def f2(seconds): wait(seconds)
def caller(steps):
    time.sleep(0.001)  # sleep: `caller` is long enough for a slice
    measured = {}
    for name, seconds in steps:
        function = globals()[name]
        begin = now()
        function(seconds)
        measured.setdefault(name, []).append(now() - begin)
    return measured
measured = caller(json.loads(sys.argv[1]))
totals = sys.modules["stretto._pyhooks"].totals()["functions"]
json.dump([measured, [(f[0], f[3], f[4]) for f in totals]], sys.stdout)
"""
FUNCTIONS = ("f0", "f1", "f2")
FEW_CALLS = st.tuples(
    *(st.lists(st.sampled_from((0.0, 0.0003, 0.003)), max_size=3) for _ in FUNCTIONS)
)
"""The durations of the calls of each function. They are so few that no function is switched off."""


@needs_events
@settings(without_shrinking, max_examples=3)
@given(durations=FEW_CALLS)
def test_counts_and_times_add_up_if_no_function_is_switched_off(
    folder: Path, durations: tuple[list[float], ...]
) -> None:
    script = folder / "counted.py"
    script.write_text(COUNTED)
    steps = [(name, d) for name, each in zip(FUNCTIONS, durations, strict=True) for d in each]
    run = record(folder / "counted.pftrace", "--auto", str(script), json.dumps(steps))
    measured, functions = json.loads(run.stdout)
    trace = Trace(run)
    totals = {name: (calls, total_ns) for name, calls, total_ns in functions}
    for name, times in measured.items():
        calls, total_ns = totals[name]
        assert calls == len(times)
        assert total_ns <= sum(times)
        assert total_ns >= 10**9 * sum(durations[FUNCTIONS.index(name)])
    caller = next(s for s in trace.slices if s.name == "caller")
    shown = [s for s in trace.slices if s.parent == caller.id and s.name in FUNCTIONS]
    inner = [s for s in trace.slices if s.parent in {s.id for s in shown} and s.name == "wait"]
    short = [s.arguments.get("short_calls", 0) for s in (caller, *shown, *inner)]
    assert len(shown) + len(inner) + sum(short) == 2 * len(steps)
    times_ns = sum(s.end - s.begin for s in shown) + caller.arguments.get("short_calls_ns", 0)
    assert times_ns == sum(totals[name][1] for name in measured)


SELDOM = """
import json, sys, time
hooks = sys.modules["stretto._pyhooks"]
def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
calls, looks = [], set()
def wait(seconds):
    if seconds:
        begin = now()
        time.sleep(seconds)  # sleep: the recorded duration of the call
        calls.append((begin, now()))
def seldom(seconds):
    wait(seconds)
for _ in range(100_000): seldom(0)
for i in range(int(sys.argv[2])):
    seldom(float(sys.argv[1]))
    for _ in range(100): seldom(0)
    if i % 50 == 0: looks.update(hooks.looks())
looks.update(hooks.looks())
json.dump([calls, sorted(looks)], sys.stdout)
"""


@pytest.mark.thorough
@pytest.mark.parametrize(("seconds", "count"), [(0.0003, 3000), (0.0025, 600)])
def test_calls_shorter_than_the_period_of_looks_are_found_by_chance(
    folder: Path, seconds: float, count: int
) -> None:
    """A call of length d is found with a probability of 0.9 d / p at least, p being the period.

    On a busy machine the period is not always the same. Before each slow call, there are so many
    fast calls that the function is switched off.
    """
    script = folder / "seldom.py"
    script.write_text(SELDOM)
    path = folder / "seldom.pftrace"
    run = record(path, "--auto", str(script), str(seconds), str(count))
    calls, times = json.loads(run.stdout)
    trace = Trace(run)
    assert "stack samples" in trace.names()
    slices = [s for s in trace.slices if s.name == "seldom"]
    looks = Looks(times)
    missing = [
        (begin, end)
        for begin, end in calls
        if looks.show(begin, end) and not any(s.begin < end and begin < s.end for s in slices)
    ]
    assert missing == []
    # The times of the looks are given. How many of them are within slow calls is chance.
    begin, end = calls[0][0], calls[-1][1]
    share = sum(e - b for b, e in calls) / (end - begin)
    deviation = (len(looks.within(begin, end)) * share * (1 - share)) ** 0.5
    expected = sum(looks.chance(0.9 * (e - b)) for b, e in calls)
    found = sum(begin <= s.begin < end for s in slices)
    assert found >= expected - 5 * deviation, (found, expected, deviation)
