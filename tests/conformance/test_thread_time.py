"""Perfetto's trace processor shows how long a thread has run within a function call."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.recorded import alone, check_trace, record

pytestmark = pytest.mark.thorough

PROGRAM = """\
import threading, time

def burns():
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass

def sleeps():
    time.sleep(0.2)  # sleep: a wait to be seen

def burns_and_sleeps():
    burns()
    sleeps()

def waits():
    burner = threading.Thread(target=burns)
    burner.start()
    burner.join()

def is_fast():
    pass

def burns_briefly():
    end = time.thread_time() + 0.0004
    while time.thread_time() < end:
        pass

def sleeps_briefly():
    time.sleep(0.0004)  # sleep: a wait to be seen

def fails():
    burns_briefly()
    raise KeyError

for _ in range(3):
    burns_and_sleeps()
    waits()
    for _ in range(1_000):
        is_fast()
for _ in range(50):
    sleeps_briefly()
    try:
        fails()
    except KeyError:
        pass
"""

ERROR_NS = 1_100_000
"""At most 1 ms at the begin of a call, and 50 us at its end."""


@pytest.fixture
def traced(oracle: Any, tmp_path: Path) -> Any:
    def run(*options: str) -> Any:
        (tmp_path / "work.py").write_text(PROGRAM)
        done = record(tmp_path / "work.pftrace", *options, "work.py", cwd=tmp_path)
        assert done.status == 0, done.stderr
        return check_trace(oracle, done.trace)

    return run


def test_summary_shows_the_cpu_time_of_functions(traced: Any, tmp_path: Path) -> None:
    traced()
    command = [sys.executable, "-m", "stretto", "summary", str(tmp_path / "work.pftrace")]
    lines = [line.split() for line in alone(*command).stdout.splitlines()]
    header = ["self", "total", "cpu", "count", "p50", "p90", "p99", "max", "name"]
    assert header in lines
    table = lines[lines.index(header) :]
    used = {line[-1]: line[4:6] for line in table if len(line) == 16}  # two words for each time
    assert used["burns"][1] == "s" or float(used["burns"][0]) > 100
    assert used["sleeps"][1] in ("us", "ms")


needs_events = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="CPython 3.11 reports no calls: times are not exact"
)


def thread_times(trace: Any, name: str) -> list[int]:
    rows = trace.query(f"select thread_dur from slice where name = '{name}'")
    return [row[0] for row in rows]


@needs_events
def test_sleeping_and_burning_calls_differ_in_thread_time(traced: Any) -> None:
    trace = traced()
    burning = thread_times(trace, "burns")
    assert len(burning) == 6
    # A burning call ends with the turn of its loop in which the time is up, so somewhat late.
    # It also handles a few events.
    assert all(200_000_000 - ERROR_NS < used < 220_000_000 for used in burning)
    for name in ("sleeps", "time.sleep", "waits"):
        used = [ns for ns in thread_times(trace, name) if ns is not None]
        assert len(used) >= 3
        assert all(ns < 20_000_000 for ns in used)
    assert all(ns > 200_000_000 - ERROR_NS for ns in thread_times(trace, "burns_and_sleeps"))


@pytest.mark.parametrize("mode", [(), ("--cpu",)])
def test_thread_that_waits_until_the_end_of_the_recording_uses_no_cpu_time(
    oracle: Any, tmp_path: Path, mode: tuple[str, ...]
) -> None:
    (tmp_path / "waits.py").write_text(
        "import queue, threading, time\n"
        "tasks, done = queue.Queue(), queue.Queue()\n"
        "def writer():\n    while True:\n        done.put(tasks.get())\n"
        "threading.Thread(target=writer, daemon=True).start()\n"
        "for task in range(3):\n    tasks.put(task)\n    done.get()\n"
        "time.sleep(1)\n"  # sleep: a wait to be seen
    )
    trace = check_trace(
        oracle, record(tmp_path / "waits.pftrace", *mode, "waits.py", cwd=tmp_path).trace
    )
    [(lasted, used)] = trace.query("select dur, thread_dur from slice where name = 'writer'")
    assert lasted > 900_000_000
    assert used < 500_000_000


@pytest.mark.parametrize("mode", [(), ("--cpu",)])
def test_waits_in_functions_that_were_fast_before_use_no_cpu_time(
    oracle: Any, tmp_path: Path, mode: tuple[str, ...]
) -> None:
    (tmp_path / "rarely.py").write_text(
        "import threading\n"
        "lock = threading.Lock()\n"
        "def takes():\n    return lock.acquire()\n"
        "def calls():\n    return takes()\n"
        "for _ in range(5):\n"
        "    for _ in range(100):\n        calls()\n        lock.release()\n"
        "    lock.acquire()\n"
        "    thread = threading.Timer(0.1, lock.release)\n"
        "    thread.start()\n"
        "    calls()\n"
        "    lock.release()\n"
        "    thread.join()\n"
    )
    trace = check_trace(oracle, record(tmp_path / "t", *mode, "rarely.py", cwd=tmp_path).trace)
    sql = "select count(*), sum(dur), sum(thread_dur) from slice where dur > 50000000 and name = "
    for name in ("calls", "takes"):
        [(count, lasted, used)] = trace.query(f"{sql} '{name}'")
        assert count == 5
        assert lasted > 400_000_000
        assert used < 50_000_000


@pytest.mark.parametrize("mode", [(), ("--cpu",), ("--full", "--cpu"), ("--ring", "--cpu")])
def test_thread_time_is_never_negative_nor_longer_than_the_call(
    traced: Any, mode: tuple[str, ...]
) -> None:
    trace = traced(*mode)
    wrong = "thread_dur < 0 or (thread_dur > dur + 5000 and category = 'python.functions')"
    assert trace.query(f"select name, dur, thread_dur from slice where {wrong}") == []
    missing = "thread_dur is null and category = 'python.functions' and dur > 1000000"
    assert trace.query(f"select name, dur from slice where {missing}") == []


@pytest.mark.parametrize(
    "mode", [pytest.param(("--cpu",), marks=needs_events), ("--full", "--cpu")], ids=str
)
def test_option_cpu_makes_the_thread_times_of_short_calls_exact(
    traced: Any, mode: tuple[str, ...]
) -> None:
    trace = traced(*mode)
    for name in ("burns_briefly", "fails"):
        burning = thread_times(trace, name)
        assert len(burning) == 50
        assert all(ns >= 400_000 for ns in burning)
    sleeping = [ns or 0 for ns in thread_times(trace, "sleeps_briefly")]
    assert len(sleeping) == 50
    assert sorted(sleeping)[25] < 300_000
