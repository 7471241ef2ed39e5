"""`stretto record --io-waits` names the file or peer for which a thread has waited."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from stretto.analysis import TraceProcessor
from stretto.recorder.host.io_waits import missing_right
from tests.support.recorded import alone, record

PROGRAM = """\
import os, socket, subprocess, sys, threading, time
server = socket.create_server(("127.0.0.1", 0))

def serve():
    for call in ("45", "7"):  # recv, poll
        connection, _ = server.accept()
        with connection:
            connection.recv(10)
            while open(f"/proc/{os.getpid()}/syscall").read().split()[0] != call:
                time.sleep(0.001)  # sleep: until the main thread waits
            time.sleep(0.3)  # sleep: the wait to be recorded
            connection.sendall(b"answer")

thread = threading.Thread(target=serve, name="server")
thread.start()
for timeout in (None, 10):  # With a time-out, Python calls poll() before recv().
    with socket.create_connection(server.getsockname(), timeout=timeout) as client:
        client.sendall(b"question")
        client.recv(10)
thread.join()
os.mkfifo("fifo")
waits = f"grep -q ^257 /proc/{os.getpid()}/syscall"  # openat
subprocess.Popen(["sh", "-c", f"until {waits}; do :; done; sleep 0.3; echo > fifo; sleep 0.1"])
with open("fifo") as fifo:
    fifo.read()
print(server.getsockname()[1])
"""
WAITING = """\
import threading, time

def work():
    for _ in range(5):
        WAIT

lock = threading.Lock()
lock.acquire()
thread = threading.Thread(target=work, name="worker")
thread.start()
thread.join()
"""
WAITS = "import time; time.sleep(0.1)"  # sleep: the wait to be recorded
SQL = """
select slice.name as name, slice.dur as dur, thread.name as thread, process.name as process,
       extract_arg(slice.arg_set_id, 'debug.file') as file,
       extract_arg(slice.arg_set_id, 'debug.peer') as peer
from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)
left join process using (upid) where slice.category = 'linux.syscall_waits'
"""


@pytest.mark.parametrize("mode", [[], ["--full"], ["--ring"], ["--sample", "1000hz"]])
def test_waits_name_the_file_or_peer(tmp_path: Path, mode: list[str]) -> None:
    if reason := missing_right():
        pytest.skip(reason)
    (tmp_path / "script.py").write_text(PROGRAM)
    trace = tmp_path / "t.pftrace"
    run = record(trace, "--io-waits", *mode, "script.py", cwd=tmp_path)
    assert run.status == 0
    peer = f"127.0.0.1:{run.stdout.strip()}"
    with TraceProcessor(str(trace), engine="sqlite") as processor:
        rows = list(processor.query(SQL))
    found = {(row.name, row.thread, row.file, row.peer) for row in rows if row.dur >= 250_000_000}
    assert ("recvfrom", "MainThread", None, peer) in found
    assert ("poll", "MainThread", None, peer) in found
    assert ("openat", "MainThread", str(tmp_path / "fifo"), None) in found
    assert ("clock_nanosleep", "server", None, None) in found
    assert "sleep" in {row.process for row in rows}


def test_summary_names_the_longest_waits(tmp_path: Path) -> None:
    if reason := missing_right():
        pytest.skip(reason)
    (tmp_path / "script.py").write_text(PROGRAM)
    trace = tmp_path / "t.pftrace"
    run = record(trace, "--io-waits", "script.py", cwd=tmp_path)
    summary = (sys.executable, "-m", "stretto", "summary")
    found = json.loads(alone(*summary, "--format", "json", str(trace)).stdout)["io_waits"]
    times = [row["total"] for row in found]
    assert times == sorted(times, reverse=True)
    targets = {(row["call"], row["target"]) for row in found if row["total"] >= 250_000_000}
    assert ("recvfrom", f"127.0.0.1:{run.stdout.strip()}") in targets
    text = alone(*summary, str(trace)).stdout
    assert "Waiting for files, peers and timers" in text
    assert f"{tmp_path.name}/fifo" in text


def test_trace_has_no_error_in_perfetto(oracle, tmp_path: Path) -> None:
    if reason := missing_right():
        pytest.skip(reason)
    run = record(tmp_path / "t.pftrace", "--io-waits", "-c", WAITS)
    processor = oracle(run.trace)
    ((duration,),) = processor.query(
        "select dur from slice join thread_track on track_id = thread_track.id "
        "join thread using (utid) where category = 'linux.syscall_waits' "
        "and slice.name = 'clock_nanosleep'"
    )
    assert duration >= 100_000_000


def test_without_the_right_waits_in_functions_of_python_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(PROGRAM)
    trace = tmp_path / "t.pftrace"
    code = (
        "import stretto.recorder.host.io_waits as module\n"
        "module.missing_right = lambda: 'no tracefs here'\n"
        "from stretto.cli.main import main\n"
        f"main(['record', '--io-waits', '-o', {str(trace)!r}, 'script.py'])\n"
    )
    run = alone(sys.executable, "-c", code, cwd=tmp_path)
    assert "only waits in Python's functions are recorded: no tracefs here" in run.stderr
    peer = f"127.0.0.1:{run.stdout.strip()}"
    with TraceProcessor(str(trace), engine="sqlite") as processor:
        rows = list(processor.query(SQL.replace("linux.syscall_waits", "python.io_waits")))
    found = {(row.name, row.thread, row.file, row.peer) for row in rows if row.dur >= 250_000_000}
    assert ("socket.recv", "MainThread", None, peer) in found
    assert ("io.open", "MainThread", str(tmp_path / "fifo"), None) in found
    assert ("time.sleep", "server", None, None) in found


@pytest.mark.parametrize(
    ("wait", "category", "name"),
    [
        ("time.sleep(0.1)", "python.io_waits", "time.sleep"),  # sleep: the wait to be recorded
        ("lock.acquire(timeout=0.1)", "python.waits", "wait for lock"),
    ],
)
def test_function_contains_its_waits(tmp_path: Path, wait: str, category: str, name: str) -> None:
    """Also where only samples find the function: on CPython 3.11."""
    (tmp_path / "script.py").write_text(WAITING.replace("WAIT", wait))
    trace = tmp_path / "t.pftrace"
    assert record(trace, "--category", category, "script.py", cwd=tmp_path).status == 0
    sql = (
        "select s.name as name, s.category as category, ts, ts + dur as end, dur from slice s"
        " join thread_track t on s.track_id = t.id join thread using (utid)"
        " where thread.name = 'worker' order by ts, dur desc"
    )
    with TraceProcessor(str(trace), engine="sqlite") as processor:
        rows = list(processor.query(sql))
    (work,) = (row for row in rows if row.name == "work")
    waits = [row for row in rows if row.category == category]
    assert {row.name for row in waits} == {name}
    assert len(waits) == 5
    assert all(row.dur >= 50_000_000 for row in waits)
    ends = [work.ts, *(row.end for row in waits)]
    begins = [*(row.ts for row in waits), work.end]
    assert all(end <= begin for end, begin in zip(ends, begins, strict=True))
