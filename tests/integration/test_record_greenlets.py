"""`stretto record` of programs with greenlets: a thread's slices are the calls that it runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.greenlet_program import GreenletTrace, recorded_greenlets

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("greenlet")

needs_events = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="CPython 3.11 reports no calls: times are not exact"
)
full_or_auto = pytest.mark.parametrize(
    "option", ["--full", pytest.param("--auto", marks=needs_events)]
)
seeds = pytest.mark.parametrize("seed", range(1, 5))


def check_no_wrong_call(trace: GreenletTrace) -> None:
    """Check that all slices at a time are of calls on the stack, in their order."""
    assert trace.spins
    for spin in trace.spins:
        names = iter(spin.names())
        found = trace.calls_at(spin)
        assert all(name in names for name in found), (spin, found)


def check_all_calls(trace: GreenletTrace) -> None:
    """Check that all calls on the stack have slices, and no others."""
    assert trace.spins
    for spin in trace.spins:
        assert trace.calls_at(spin) == spin.names(), spin


@seeds
def test_each_call_on_the_stack_is_a_slice_with_full(tmp_path: Path, seed: int) -> None:
    check_all_calls(recorded_greenlets(tmp_path, f"main({seed}, {1 + seed % 3})", "--full"))


@needs_events
@seeds
def test_no_slice_is_of_a_call_that_does_not_run(tmp_path: Path, seed: int) -> None:
    trace = recorded_greenlets(tmp_path, f"main({seed}, {1 + seed % 3})", "--auto")
    check_no_wrong_call(trace)


SUSPENDED = """
def worker():
    greenlet.getcurrent().parent.switch()
    spin(2)

def phase():
    spin(5)

def body():
    greenlets = [greenlet.greenlet(worker) for _ in range(500)]
    for each in greenlets:
        each.switch()
    for _ in range(10):
        phase()
    for each in greenlets[:5]:
        each.switch()
    spin(20)

FUNCTIONS = {"body", "worker", "phase", "spin"}
body()
"""


@full_or_auto
def test_suspended_greenlets_have_no_slices(tmp_path: Path, option: str) -> None:
    trace = recorded_greenlets(tmp_path, SUSPENDED, option)
    phases = [slice_ for slice_ in trace.slices if slice_.name == "phase"]
    assert len(phases) == 10
    for slice_ in phases:
        assert "worker" not in trace.names_above(slice_)
    long = [s for s in trace.slices if s.name == "worker" and s.end - s.begin > 1_900_000]
    assert (5 if option == "--full" else 0) <= len(long) < 100
    check_no_wrong_call(trace)


ONCE = """
def worker():
    for _ in range(20):
        spin(1)
        greenlet.getcurrent().parent.switch()

def body():
    each = greenlet.greenlet(worker)
    while not each.dead:
        each.switch()
        spin(1)

body()
hooks = sys.modules["stretto._pyhooks"]
counts = {each[0]: each[3] for each in hooks.totals()["functions"]}
assert counts["body"] in (0, None, 1), counts
assert counts["worker"] in (None, 1), counts
assert counts["spin"] in (None, 41), counts
"""


@needs_events
def test_call_that_is_suspended_often_is_counted_once(tmp_path: Path) -> None:
    trace = recorded_greenlets(tmp_path, ONCE, "--auto")
    workers = [slice_ for slice_ in trace.slices if slice_.name == "worker"]
    assert 15 <= len(workers) <= 21
    check_no_wrong_call(trace)


ENDED = """
def worker():
    try:
        spin(2)
        greenlet.getcurrent().parent.switch()
    finally:
        spin(3)

def body():
    for how in ("killed", "collected", "never resumed"):
        each = greenlet.greenlet(worker)
        each.switch()
        spin(2)
        if how == "killed":
            each.throw()
        elif how == "collected":
            del each
        else:
            kept.append(each)
        spin(2)

kept = []
for run in range(2):
    body()
started = threading.Thread(target=body)
started.start()
started.join()
"""


@full_or_auto
def test_greenlets_that_are_killed_or_collected_end_their_slices(
    tmp_path: Path, option: str
) -> None:
    trace = recorded_greenlets(tmp_path, ENDED, option)
    check_no_wrong_call(trace)
    spins = [slice_ for slice_ in trace.slices if slice_.name == "spin"]
    assert sum(trace.names_above(slice_)[:1] == ["worker"] for slice_ in spins) >= 15


TASKS = """
import asyncio

async def body(greenlets):
    for each in greenlets:
        spin(2)
        each.switch()
        spin(2)
        await asyncio.sleep(0.001)  # sleep: a step ends

def act():
    for _ in range(3):
        spin(3)
        greenlet.getcurrent().parent.switch()

async def main():
    greenlets = [greenlet.greenlet(act) for _ in range(3)]
    await asyncio.gather(body(greenlets), body(greenlets))

asyncio.run(main())
"""


@full_or_auto
def test_steps_of_tasks_do_not_contain_other_greenlets(tmp_path: Path, option: str) -> None:
    trace = recorded_greenlets(tmp_path, TASKS, option)
    check_no_wrong_call(trace)
    for slice_ in trace.slices:
        if slice_.name == "act":
            assert trace.names_above(slice_) == []
    assert ("steps of tasks: the program has greenlets" in trace.run.stderr) == (option == "--full")
