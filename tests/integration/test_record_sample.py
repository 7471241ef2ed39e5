"""`stretto record --sample` records stacks instead of calls, beside all other events."""

from __future__ import annotations

import json
import re
import sys
import zlib
from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.protos.trace import Trace, TracePacket
from tests.support import seccomp
from tests.support.recorded import alone, check_trace, record, record_command

PROGRAM = """
import logging, os, subprocess, sys, time
import stretto

def spend(name):
    end = time.process_time() + 1
    while time.process_time() < end:
        pass

def parent():
    with stretto.slice("order"):
        spend("parent")

def child():
    spend("child")
    os._exit(0)

logging.warning("started")
if os.fork() == 0:
    child()
os.wait()
parent()
if "isolated" in sys.argv:
    # Processes that don't connect are looked for twice a second.
    alone = "from time import process_time as now\\nend = now() + 1.5\\n"
    alone += "def alone():\\n while now() < end: pass\\nalone()"
    subprocess.run([sys.executable, "-I", "-c", alone])
"""

LEAVES = """
select f.name, count(*), count(distinct upid) from perf_sample s join thread using (utid)
join stack_profile_callsite c on c.id = s.callsite_id
join stack_profile_frame f on f.id = c.frame_id group by 1
"""


def packets_of(trace: bytes) -> list[TracePacket]:
    """Return the packets of a trace, also those inside compressed ones."""
    packets: list[TracePacket] = []
    for packet in Trace.decode(trace).packet:
        inner = packet.compressed_packets
        packets += Trace.decode(zlib.decompress(inner)).packet if inner else [packet]
    return packets


def test_samples_of_the_program_and_its_children_are_beside_its_events(
    oracle, tmp_path: Path
) -> None:
    script = tmp_path / "shop.py"
    script.write_text(PROGRAM)
    run = record(tmp_path / "t.pftrace", "--sample", "1000hz", str(script), "isolated")
    assert run.status == 0
    loaded = check_trace(oracle, run.trace)
    found = {name: (samples, processes) for name, samples, processes in loaded.query(LEAVES)}
    assert found["spend"][1] == 2
    assert "alone" in found
    names = {name for (name,) in loaded.query("select name from slice")}
    assert "order" in names
    assert "parent" not in names
    assert loaded.query("select msg from android_logs") == [("started",)]
    assert "each is 1 ms of CPU time" in run.stderr
    assert "running in: " in run.stderr


def test_stack_samples_take_the_place_of_perf_samples(oracle, tmp_path: Path) -> None:
    code = "import time\nwhile time.process_time() < 0.5: pass"
    run = record(tmp_path / "t.pftrace", "--sample", "1000hz", "--stack-samples", "-c", code)
    assert run.status == 0
    packets = packets_of(run.trace)
    samples = [packet.stack_sample for packet in packets if packet.stack_sample]
    assert len(samples) > 100
    assert all(sample.callstack_iid or sample.unwind_error for sample in samples)
    assert not any(packet.perf_sample for packet in packets)
    assert "running in: " in run.stderr


DIGESTS = """
import hashlib, sys, time
data = bytes(1 << 20)
def key(number):
    return hashlib.sha256(data).digest()
def sorter():
    sorted([1, 2], key=key)
end = time.process_time() + 0.7
while time.process_time() < end:
    sorter()
sys.exit(7)
"""
NATIVE = ("--sample", "1000hz", "--native")
CALLERS = """
select f.name, caller.name from stack_profile_callsite c
join stack_profile_frame f on f.id = c.frame_id
join stack_profile_callsite p on p.id = c.parent_id
join stack_profile_frame caller on caller.id = p.frame_id
"""


@pytest.mark.skipif(
    sys.version_info >= (3, 14),
    reason="Debian's builds have no names for all parts of the interpreter's loop",
)
def test_c_functions_are_between_the_python_calls(oracle, tmp_path: Path) -> None:
    run = record(tmp_path / "t.pftrace", *NATIVE, "-c", DIGESTS)
    assert run.status == 7
    calls = check_trace(oracle, run.trace).query(CALLERS)
    # `sorted` calls `key`, but in samples of Python calls only.
    assert {caller for name, caller in calls if name == "key"} - {"sorter"}
    assert "key" in {caller for _, caller in calls}
    assert re.search(r"\d samples have C functions; the process was stopped for \d", run.stderr)


@pytest.mark.skipif(not seccomp.available(), reason="this kernel takes no seccomp filter")
def test_where_ptrace_is_forbidden_samples_have_python_calls_and_the_end_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.pftrace"
    refuse = [sys.executable, str(Path(seccomp.__file__)), "EPERM", "ptrace"]
    run = alone(*refuse, *record_command(path, *NATIVE, "-c", DIGESTS))
    assert run.status == 7
    assert "running in: key " in run.stderr
    assert "samples have none: the kernel refused to stop the thread" in run.stderr
    assert main(["summary", str(path)]) == 0
    told = re.search(r"([\d,]+) samples have none: the kernel refused", run.stderr)
    assert told is not None
    text = f"lost: {told[1]} samples have no C functions: the kernel refused to stop the thread"
    assert text in capsys.readouterr().out


@pytest.mark.parametrize("number", [9, 11])
def test_signal_that_ends_a_program_with_native_samples_is_the_exit_status(
    tmp_path: Path, number: int
) -> None:
    code = "import os, time\nwhile time.process_time() < 0.3: pass\n"
    code += f"os.kill(os.getpid(), {number})"
    assert record(tmp_path / "t.pftrace", *NATIVE, "-c", code).status == -number


def test_many_short_programs_with_native_samples_end_as_they_are(tmp_path: Path) -> None:
    code = "import threading, time\ndef spin():\n while time.process_time() < 0.05: pass\n"
    code += "for _ in range(3): threading.Thread(target=spin, daemon=True).start()\n"
    code += "spin()\nraise SystemExit(5)"
    options = ("--sample", "20000hz", "--native", "-q")
    runs = [record(tmp_path / "t.pftrace", *options, "-c", code) for _ in range(5)]
    assert [(run.status, run.stderr) for run in runs] == [(5, "")] * 5


TASKS = """
import asyncio, time

async def yields():
    for _ in range(20_000):
        await asyncio.sleep(0)

async def waits():
    time.sleep(0.03)  # sleep: the duration of the step
    await asyncio.sleep(0.05)  # sleep: the duration of the wait

async def main():
    await yields()
    await asyncio.create_task(waits(), name="mine")

asyncio.run(main())
"""
LANES = """
select s.name, max(dur) from slice s join track t on track_id = t.id
where t.name like 'waits (mine)' group by 1
"""


def test_only_long_steps_of_tasks_are_beside_the_samples(oracle, tmp_path: Path) -> None:
    run = record(tmp_path / "t.pftrace", "--sample", "1000hz", "-c", TASKS)
    assert run.status == 0
    loaded = check_trace(oracle, run.trace)
    steps = "select count(*) from slice join thread_track on track_id = thread_track.id"
    ((count,),) = loaded.query(f"{steps} where category = 'python.asyncio'")
    assert 1 <= count < 2_000
    assert loaded.query(f"{steps} where slice.name = 'waits' and dur >= 30e6") != [(0,)]
    lane = dict(loaded.query(LANES))
    assert lane["mine"] >= lane["waits"] >= 80_000_000
    assert lane["await"] >= 45_000_000


def test_waiting_threads_are_sampled_in_wall_time(oracle, tmp_path: Path) -> None:
    code = "import time\ndef waits(): time.sleep(0.5)\nwaits()"  # sleep: what is sampled
    options = ("--sample", "1000hz", "--data-source", "python.wall")
    run = record(tmp_path / "t.pftrace", *options, "-c", code)
    assert run.status == 0
    found = {row[0]: row[1] for row in check_trace(oracle, run.trace).query(LEAVES)}
    assert found["waits"] > 0
    assert "each is 1 ms of wall time" in run.stderr
    assert "seen in: waits " in run.stderr
    assert "running in" not in run.stderr


def test_of_a_deep_stack_the_innermost_calls_are_sampled(oracle, tmp_path: Path) -> None:
    code = "import sys, time\nsys.setrecursionlimit(9000)\ndef spin():\n"
    code += " while time.process_time() < 1: pass\n"
    code += "def deep(n): return deep(n - 1) if n else spin()\ndeep(8000)"
    run = record(tmp_path / "t.pftrace", "--sample", "1000hz", "-c", code)
    assert run.status == 0
    loaded = check_trace(oracle, run.trace)
    found = {row[0]: row[1] for row in loaded.query(LEAVES)}
    assert found["spin"] > 20
    assert loaded.query("select max(depth) from stack_profile_callsite") == [(1023,)]
    assert "samples of deep stacks have the innermost 1,024 calls only" in run.stderr


def test_program_started_by_a_shell_is_sampled(tmp_path: Path) -> None:
    code = "def spin():\n for _ in range(10**7): pass\nspin()"
    command = ("--sample", "1000hz", "--", "sh", "-c", 'exec "$0" -c "$1"')
    run = record(tmp_path / "t.pftrace", *command, sys.executable, code)
    assert run.status == 0
    assert "spin (<string>:1)" in run.stderr


def test_summary_shows_the_functions_of_each_thread_with_their_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "import threading\ndef spin():\n for _ in range(10**7): pass\n"
    code += "t = threading.Thread(target=spin, name='helper')\nt.start(); t.join(); spin()"
    run = record(tmp_path / "t.pftrace", "--sample", "1000hz", "-c", code)
    assert main(["summary", str(run.path)]) == 0
    _, _, tables = capsys.readouterr().out.partition("\nStack samples\n")
    assert re.search(r"^helper of python -c .*: [0-9,]+ samples$", tables, re.M)
    shares = re.findall(r"^ *([0-9.]+) ±[0-9.]+ % +([0-9.]+) ±[0-9.]+ %  spin", tables, re.M)
    assert len(shares) == 2
    assert all(50 < float(own) <= float(total) <= 100 for own, total in shares)
    assert main(["summary", "--format", "json", str(run.path)]) == 0
    threads = json.loads(capsys.readouterr().out)["samples"]
    first = threads[0]["functions"][0]
    assert (first["name"], first["self"] > 0, 0 < first["self_error"] < 1) == ("spin", True, True)


def test_sources_have_tables_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "import time\ndef spin():\n while time.process_time() < 0.5: pass\n"
    code += "def rest(): time.sleep(0.5)\nspin(); rest()"  # sleep: what is sampled
    sources = ("--data-source", "python.cpu", "--data-source", "python.wall")
    run = record(tmp_path / "t.pftrace", "--sample", "500hz", *sources, "-c", code)
    assert main(["summary", str(run.path)]) == 0
    text = capsys.readouterr().out
    tables = re.findall(r" samples by (python\.\w+)\n((?:.+\n|\n(?=\s*self))*)", text)
    found = dict(tables)
    assert len(tables) == 2
    # The last CPU time of `spin` may be noticed when `rest` sleeps already.
    shares = re.findall(r"^ *([\d.]+) ±.* rest \(<string>\)", found["python.cpu"], re.M)
    assert sum(map(float, shares)) < 5
    assert "rest (<string>)" in found["python.wall"]
    assert main(["summary", "--format", "json", str(run.path)]) == 0
    threads = json.loads(capsys.readouterr().out)["samples"]
    assert {thread["source"] for thread in threads} == {"python.cpu", "python.wall"}


def test_program_that_outlives_the_duration_has_its_samples_in_the_summary(
    oracle, tmp_path: Path
) -> None:
    code = "import time\ndef spin():\n while time.process_time() < 1.5: pass\nspin()"
    options = ("--sample", "1000hz", "-t", "700ms")
    run = record(tmp_path / "t.pftrace", *options, "-c", code)
    assert run.status == 0
    assert "running in: spin " in run.stderr
    told = re.search(r"samples: ([\d,]+) of 1 process", run.stderr)
    assert told is not None
    sql = "select count(*) from perf_sample where callsite_id is not null"
    ((samples,),) = check_trace(oracle, run.trace, complete=False).query(sql)
    assert samples == int(told[1].replace(",", ""))
