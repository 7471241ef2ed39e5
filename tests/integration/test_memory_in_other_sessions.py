"""Heap profiles and object graphs in rings, snapshots, sessions of the machine, beside samplers."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.polling import wait_until
from tests.support.recorded import check_trace, record_command
from tests.support.traced import Daemon, Process

MB = 1 << 20
PROGRAM = """
import os, sys

class Kept:
    pass

kept = []

def keep():
    kept.append([bytes(1000) for _ in range(6144)])
    kept.append(Kept())

def busy():
    return sum(i * i for i in range(2000))

print(os.getpid(), flush=True)
for line in sys.stdin:
    while not os.path.exists(line.strip()):
        busy()
    keep()
    print("kept", flush=True)
"""
"""Keeps 6 MB more for each line that it reads, when the file of that name exists."""

HELD = """
select a.ts, sum(a.size) from heap_profile_allocation a
join stack_profile_callsite c on c.id = a.callsite_id
join stack_profile_frame f on f.id = c.frame_id
where a.heap_name = 'python.obj' and f.name like 'keep%' group by 1 order by 1
"""
OBJECTS = """
select graph_sample_ts, count(*) from heap_graph_object o
join heap_graph_class c on c.id = o.type_id
where c.name = '__main__.Kept' and reachable group by 1 order by 1
"""
MEMORY = ("--heap=4k", "--object-graph")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    found: list[Process] = []
    yield found
    for process in reversed(found):
        process.close()


def keep(program: Process) -> None:
    program.write_line("/")
    assert program.line() == "kept\n"


def is_about(size: int, count: int) -> bool:
    """Whether a sum is that of `count` times 6 MB: the standard error is 2.5 %."""
    return bool(abs(size - count * 6 * MB) < 0.12 * count * 6 * MB)


def test_ring_and_its_snapshot_have_the_memory_of_their_time(
    oracle: Any, tmp_path: Path, script: Path, processes: list[Process]
) -> None:
    trace = tmp_path / "trace.pftrace"
    command = record_command(trace, "--ring", *MEMORY, str(script))
    recorder = Process(*command, stderr=subprocess.PIPE)
    processes.append(recorder)
    assert recorder.line()
    keep(recorder)
    recorder.signal(signal.SIGUSR2)
    snapshot = trace.with_name("trace.snapshot-1.pftrace")
    wait_until(snapshot.exists)
    time.sleep(0.7)  # sleep: the service clears the incremental state every 0.5 s
    keep(recorder)
    recorder.popen.communicate(timeout=60)
    assert recorder.wait() == 0
    early = check_trace(oracle, snapshot.read_bytes(), complete=False)
    assert is_about(sum(size for _, size in early.query(HELD)), 1)
    assert [count for _, count in early.query(OBJECTS)] == [1]
    late = check_trace(oracle, trace.read_bytes(), complete=False)
    # The differences of all dumps that the ring still has.
    assert is_about(sum(size for _, size in late.query(HELD)), 2)
    assert [count for _, count in late.query(OBJECTS)][-1] == 2


def test_session_of_the_machine_profiles_the_program(
    oracle: Any, tmp_path: Path, script: Path, processes: list[Process]
) -> None:
    (tmp_path / "sockets").mkdir()
    daemon = Daemon(tmp_path / "sockets")
    processes.append(daemon)
    trace = tmp_path / "trace.pftrace"
    command = record_command(trace, "--system", *MEMORY, str(script))
    recorder = Process(*command, env=daemon.environment, stderr=subprocess.PIPE)
    processes.append(recorder)
    assert recorder.line()
    keep(recorder)
    recorder.popen.communicate(timeout=60)
    assert recorder.wait() == 0
    loaded = check_trace(oracle, trace.read_bytes(), complete=False)
    assert is_about(sum(size for _, size in loaded.query(HELD)), 1)
    assert [count for _, count in loaded.query(OBJECTS)] == [1]


def test_profiled_program_can_be_sampled_meanwhile(
    oracle: Any, tmp_path: Path, script: Path, processes: list[Process]
) -> None:
    trace, samples = tmp_path / "trace.pftrace", tmp_path / "samples.pftrace"
    recorder = Process(*record_command(trace, *MEMORY, str(script)), stderr=subprocess.PIPE)
    processes.append(recorder)
    pid = recorder.line().strip()
    keep(recorder)
    end = tmp_path / "end"
    recorder.write_line(str(end))
    attach = (sys.executable, "-m", "stretto", "attach", "-t", "1s", "-o", str(samples), pid)
    subprocess.run(attach, check=True, capture_output=True, timeout=60)
    end.touch()
    assert recorder.line() == "kept\n"
    recorder.popen.communicate(timeout=60)
    assert recorder.wait() == 0
    loaded = check_trace(oracle, trace.read_bytes(), complete=False)
    assert is_about(sum(size for _, size in loaded.query(HELD)), 2)
    sampled = oracle(samples.read_bytes()).query(
        "select count(*) > 10 from perf_sample s join stack_profile_callsite c"
        " on c.id = s.callsite_id join stack_profile_frame f on f.id = c.frame_id"
        " where f.name like 'busy%'"
    )
    assert sampled == [(1,)]
