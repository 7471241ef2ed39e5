"""Times of threads, from the event that auto detail writes at the end of a process."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto.analysis.thread_times import ThreadTimes
from stretto.analysis.trace_summary import summarize
from stretto.analysis.trace_tables import import_trace
from stretto.cli.main import main
from tests.support.recorded_events import record

functions = stretto.Category("test.functions")
OWN = str(threading.get_native_id())


def times_of_lane(threads: dict[str, Any]) -> ThreadTimes | None:
    """Return the times of this thread's lane, for these arguments of the event."""
    with record() as recorded:
        functions.instant("stack samples", period_ns=1, threads=threads)
    (lane,) = summarize(import_trace(io.BytesIO(bytes(recorded.trace)))).lanes
    return lane.thread


def test_lane_has_the_times_of_its_thread() -> None:
    own = {"running_ns": 5, "ready_ns": 6, "blocked_ns": 7}
    assert times_of_lane({OWN: own, "1": {"running_ns": 8}}) == ThreadTimes(5, 6, 7)


def test_other_lane_of_a_thread_has_no_times_of_the_thread() -> None:
    own = {"running_ns": 5, "ready_ns": 6, "blocked_ns": 7}
    request = stretto.Track("GET /quote", parent=stretto.thread_track(), id=1)
    flat = stretto.Track("requests", id=2)
    with record() as recorded:
        functions.instant("stack samples", period_ns=1, threads={OWN: own})
        functions.instant("begins", track=request)
        functions.instant("ends", track=flat)
    lanes = summarize(import_trace(io.BytesIO(bytes(recorded.trace)))).lanes
    assert sorted(lane.thread is not None for lane in lanes) == [False, False, True]


def test_summary_has_columns_for_the_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"running_ns": 5, "ready_ns": 6, "blocked_ns": 7}
    with record() as recorded:
        functions.instant("stack samples", period_ns=1, threads={OWN: own})
    (tmp_path / "t.pftrace").write_bytes(bytes(recorded.trace))
    assert main(["summary", str(tmp_path / "t.pftrace")]) == 0
    text = capsys.readouterr().out.partition("Lanes")[2]
    assert "cpu   ran  waited for a CPU  blocked  slices  lane" in text
    assert "-  5 ns              6 ns     7 ns       1  " in text
    assert main(["summary", "--format", "json", str(tmp_path / "t.pftrace")]) == 0
    (lane,) = json.loads(capsys.readouterr().out)["lanes"]
    assert lane["thread"] == {"running": 5, "ready": 6, "blocked": 7}


def test_waiting_that_the_kernel_does_not_explain_counts_as_blocked() -> None:
    assert times_of_lane({OWN: {"running_ns": 5, "waiting_ns": 9}}) == ThreadTimes(5, None, 9)


def test_times_of_other_threads_and_damaged_times_are_left_out() -> None:
    assert times_of_lane({str(os.getpid() + 1): {"running_ns": 5}}) is None
    assert times_of_lane({OWN: "running"}) is None
    assert times_of_lane({OWN: {"running_ns": "5"}}) is None
