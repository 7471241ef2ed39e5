"""`stretto summary` of a recording gives the figures of the summary after `stretto record`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from stretto.analysis.trace_summary import summarize
from stretto.analysis.trace_tables import import_trace
from tests.support.recorded import alone, record

PROGRAM = """\
import threading

def work(n):
    return n and work(n - 1)

def many():
    for _ in range(300):
        work(50)

thread = threading.Thread(target=many)
thread.start()
thread.join()
many()
"""


def figures(text: str) -> list[str]:
    """Return the lines with counts and losses, without the seconds that a ring has kept.

    The recorder measures the seconds from its own start, the summary from the start of tracing.
    """
    lines = [line for line in text.splitlines() if line.startswith(("stretto: ", "  lost: "))]
    return [re.sub(r"kept the last [^,]*, ", "", line) for line in lines]


@pytest.mark.parametrize(
    "options", [["--full"], ["--ring", "--buffer", "64K"], []], ids=["full", "ring", "auto"]
)
def test_summary_has_the_figures_of_the_recording(options: list[str], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = record(tmp_path / "t.pftrace", *options, str(program))
    assert run.status == 0, run.stderr
    shown = alone(sys.executable, "-m", "stretto", "summary", str(tmp_path / "t.pftrace"))
    assert shown.status == 0, shown.stderr
    nothing = "  lost: nothing, as far as the trace tells"
    assert [line for line in figures(shown.stdout) if line != nothing] == figures(run.stderr)
    assert "--ring" not in options or len(figures(run.stderr)) > 1


WORKERS = """
import sys, threading, time

looks = sys.modules["stretto._pyhooks"].looks

def works():
    begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        pass
    while not any(look[0] > begin for look in looks()):  # The recorder has seen this thread.
        pass
    sys.stdout.write(f"{threading.current_thread().name}={time.thread_time_ns()}\\n")

for _ in range(3):
    workers = [threading.Thread(target=works) for _ in range(3)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
"""


def test_thread_that_has_ended_ran_as_long_as_its_calls_used_the_cpu(tmp_path: Path) -> None:
    (tmp_path / "workers.py").write_text(WORKERS)
    # Without --cpu the times of calls are estimates, wrong by as long as a thread had no CPU.
    run = record(tmp_path / "t.pftrace", "--cpu", str(tmp_path / "workers.py"))
    assert run.status == 0, run.stderr
    used_ns = dict(line.split("=") for line in run.stdout.splitlines())
    lanes = summarize(import_trace(tmp_path / "t.pftrace")).lanes
    workers = [lane for lane in lanes if lane.thread and lane.name != "MainThread"]
    assert len(workers) == len(used_ns) == 9
    for lane in workers:
        assert lane.thread
        assert lane.cpu < int(used_ns[lane.name]) + 15_000_000, lane
        if sys.version_info >= (3, 12):  # CPython 3.11 does not report the ends of calls.
            assert lane.thread.running > 20_000_000, lane
            # The times of calls are in whole us.
            assert lane.cpu < lane.thread.running + 10_000, lane


TASKS = """
import asyncio, os, sys
async def sleeps(): await asyncio.sleep(.1)  # sleep: long enough for a lane
async def main(): await asyncio.gather(*(sleeps() for _ in range(5000)))
asyncio.run(main())
if os.fork() == 0:
    sys.exit()
os.wait()
"""


TASKS_IN_TURN = """
import asyncio
async def turns():
    for _ in range(3000): await asyncio.sleep(0)
async def main(): await asyncio.gather(*(turns() for _ in range(20)))
asyncio.run(main())
"""


def test_summaries_and_losses_count_the_waits_without_a_slice(tmp_path: Path) -> None:
    run = record(tmp_path / "t.pftrace", "-c", TASKS_IN_TURN)
    assert run.status == 0, run.stderr
    (said,) = re.findall(r"left out: ([\d,]+) waits without a slice, each", run.stderr)
    query = ("query", "--engine", "sqlite", "--format", "csv", "--ask", "losses")
    rows = alone(sys.executable, "-m", "stretto", *query, str(run.path)).stdout.splitlines()
    assert f"waits without a slice,,data_loss,{said.replace(',', '')}" in rows


def test_summaries_and_losses_count_the_tasks_without_a_lane(tmp_path: Path) -> None:
    run = record(tmp_path / "t.pftrace", "-c", TASKS)
    assert run.status == 0, run.stderr
    (said,) = re.findall(r"left out: (?:\d+: )?([\d,]+) tasks without a lane: 250 a", run.stderr)
    stretto = (sys.executable, "-m", "stretto")
    shown = alone(*stretto, "summary", str(run.path))
    assert "left out: tasks without a lane: `--ask losses` counts them" in shown.stdout
    query = ("query", "--engine", "sqlite", "--format", "csv", "--ask", "losses")
    rows = alone(*stretto, *query, str(run.path)).stdout.splitlines()
    assert f"tasks without a lane,,data_loss,{said.replace(',', '')}" in rows
