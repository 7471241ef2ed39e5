"""`stretto record --sched` records scheduling if the machine allows it; else it prints why not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stretto.analysis.off_cpu import READY
from stretto.analysis.trace_summary import Summary, summarize
from stretto.analysis.trace_tables import import_trace, table_rows
from stretto.base import pid_namespace
from stretto.protos.trace import Trace
from stretto.recorder.host.io_waits import missing_right
from tests.support.recorded import record
from tests.support.tracefs_instances import left_behind

MAIN = "MainThread"
WAITS = "import time\nfor _ in range(5): time.sleep(0.01)"  # sleep: the state to be recorded


def test_recording_without_the_right_continues_and_reports_the_reason(tmp_path: Path) -> None:
    if not (reason := missing_right()):
        pytest.skip("this machine records scheduling")
    if not pid_namespace.is_initial():
        pytest.skip("in a PID namespace, tracefs is not asked")
    run = record(tmp_path / "t.pftrace", "--sched", "-c", WAITS)
    assert run.status == 0
    assert f"no scheduling is recorded: linux.ftrace: {reason}" in run.stderr
    packets = Trace.decode(run.trace).packet
    (stats,) = (packet.ftrace_stats for packet in packets if packet.ftrace_stats is not None)
    assert stats.exclusive_feature_error == reason


def test_states_of_the_programs_threads_are_recorded(oracle, tmp_path: Path) -> None:
    if reason := missing_right():
        pytest.skip(reason)
    run = record(tmp_path / "t.pftrace", "--sched", "-c", WAITS)
    assert run.status == 0
    processor = oracle(run.trace)
    states = processor.query(
        "select state, count(*) from thread_state join thread using (utid) "
        "join process using (upid) where thread.tid = process.pid group by 1"
    )
    assert dict(states)["S"] >= 5
    assert "Running" in dict(states)
    assert left_behind() == []


def test_sched_is_refused_in_a_system_recording(tmp_path: Path) -> None:
    run = record(tmp_path / "t.pftrace", "--sched", "--system", "-c", WAITS)
    assert run.status == 2
    assert "--data-source linux.ftrace" in run.stderr


SLEEPS = "import time\nfor _ in range(10): time.sleep(0.05)"  # sleep: the state to be recorded
RUNS = 4
TOO_LONG_NS = 250_000_000
"""Half of the time that the program sleeps."""


def wrong_waits_ns(found: Summary) -> int:
    """How much longer the main thread waits for a CPU in the trace than by its schedstat."""
    shown = sum(row.total for row in found.off_cpu if (row.thread, row.reason) == (MAIN, READY))
    (times,) = (lane.thread for lane in found.lanes if lane.name == MAIN and lane.thread)
    return shown - (times.ready or 0)


def test_times_without_a_cpu_are_those_of_the_kernel_or_the_summary_tells_it(
    tmp_path: Path,
) -> None:
    if reason := missing_right():
        pytest.skip(reason)
    for number in range(RUNS):
        run = record(tmp_path / f"{number}.pftrace", "--sched", "-c", SLEEPS)
        assert run.status == 0
        found = summarize(import_trace(run.trace))
        missing = [line for line in found.losses if "switches of CPUs" in line]
        assert missing or wrong_waits_ns(found) < TOO_LONG_NS


def test_recorder_in_a_pid_namespace_records_no_other_programs(tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    inside = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*inside, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this user can't make a PID namespace")
    command = [*inside, sys.executable, "-m", "stretto", "record", "--sched", "-o", str(path)]
    run = subprocess.run(
        [*command, "-c", "print(1)"], check=True, capture_output=True, text=True, timeout=60
    )
    assert "no scheduling is recorded: this is a PID namespace" in run.stderr
    importer = import_trace(path.read_bytes())
    assert not table_rows(importer, "__intrinsic_sched_slice")
