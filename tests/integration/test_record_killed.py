"""Calls that are open for long are in the trace before they end: a program may be killed."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.recorded import check_trace, record

KILLED = """
import os, socket, subprocess, threading, time

lock = threading.Lock()
end, other = socket.socketpair()

def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end: pass

def loop():
    while True: pass

def sleep(): time.sleep(100)  # sleep: it is killed
def take(): lock.acquire(); lock.acquire()
def receive(): end.recv(1)

def main():
    spin(0.1)
    {stuck}()

subprocess.Popen(["sh", "-c", f"sleep 2; kill -9 {{os.getpid()}}"])
main()
"""

OPEN = """
select slice.name from slice join thread_track t on track_id = t.id join thread using (utid)
where dur < 0 and is_main_thread order by depth
"""


@pytest.mark.parametrize(
    ("stuck", "waits"),
    [("loop", ""), ("sleep", ".sleep"), ("take", ".acquire"), ("receive", ".recv")],
)
def test_killed_program_has_the_call_in_which_it_was_stuck(
    tmp_path: Path, oracle: Any, stuck: str, waits: str
) -> None:
    (tmp_path / "app.py").write_text(KILLED.format(stuck=stuck))
    run = record(tmp_path / "t.pftrace", "--auto", str(tmp_path / "app.py"))
    assert run.status == -signal.SIGKILL
    loaded = check_trace(oracle, run.trace, complete=False)
    calls = [name for (name,) in loaded.query(OPEN)]
    assert calls[:3] == ["app.py", "main", stuck]
    assert len(calls[3:]) == bool(waits)
    assert all(name.endswith(waits) for name in calls[3:])


LIVES_ON = """
import signal, sys, threading, time

lock = threading.Lock()
lock.acquire()

def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end: pass

def on_alarm(*_):
    spin(0.01)
    if fails: raise TimeoutError

def sleeps(): time.sleep(0.6)  # sleep: longer than a call waits to be written
def takes(): lock.acquire(timeout=0.6); spin(0.01)
def never_ends(): time.sleep(100)  # sleep: the program ends before

def interrupted():
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try: time.sleep(0.7)  # sleep: a signal comes before the end
    except TimeoutError: spin(0.01)

def main():
    global fails
    signal.signal(signal.SIGALRM, on_alarm)
    threading.Thread(target=never_ends, daemon=True).start()
    threads = [threading.Thread(target=f) for f in (sleeps, takes)]
    for each in threads: each.start()
    for fails in False, True: interrupted()
    for each in threads: each.join()
    spin(0.5)
    sleeps()

main()
"""

WAITS = """
select parent.name, slice.name, slice.dur / 100000000 from slice
join slice parent on slice.parent_id = parent.id
where slice.name in ('time.sleep', '_thread.lock.acquire', 'lock.acquire')
and parent.name in ('sleeps', 'takes', 'interrupted', 'never_ends')
order by parent.name, slice.ts
"""


def test_long_calls_that_end_later_are_whole(tmp_path: Path, oracle: Any) -> None:
    (tmp_path / "app.py").write_text(LIVES_ON)
    run = record(tmp_path / "t.pftrace", "--auto", str(tmp_path / "app.py"))
    assert (run.status, run.stderr.count("Traceback")) == (0, 0)
    loaded = check_trace(oracle, run.trace)
    rows = loaded.query(WAITS)
    assert {parent for parent, _, _ in rows} == {"sleeps", "takes", "interrupted", "never_ends"}
    assert [name for parent, name, _ in rows if parent == "sleeps"] == ["time.sleep"] * 2
    assert all(tenths >= 5 for parent, _, tenths in rows if parent in ("sleeps", "takes"))
    depths = "select name, depth from slice where name in ('main', 'spin') order by ts desc limit 1"
    assert loaded.query(depths) == [("spin", 2)]  # in app.py and main
