"""Heap profiles of recorded and of connected programs, read by the real trace processor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stretto.protos.config import DataSourceConfig, HeapprofdConfig, TraceConfig
from stretto.testing.decoded_packets import decode_packets
from tests.support.live_program import LiveProgram
from tests.support.recorded import check_trace, record
from tests.support.service_process import ServiceProcess

MB = 1 << 20

SHOP = """
import os, subprocess, sys

KEPT = 6 << 20
kept = []

def keep():
    kept.extend(bytes(1000) for _ in range(KEPT // 1024))

def spend():
    for _ in range(20):
        [bytes(1000) for _ in range(2000)]

def serve():
    keep()
    spend()

if len(sys.argv) > 1:
    if os.fork() == 0:
        keep()
        sys.exit()
    os.wait()
    subprocess.run([sys.executable, "-c", "kept = [bytes(1000) for _ in range(6144)]"], check=True)
serve()
"""

HELD = """
select p.upid, f.name, m.name, sum(a.size), sum(max(a.size, 0)), count(distinct a.ts)
from heap_profile_allocation a join process p using (upid)
join stack_profile_callsite c on c.id = a.callsite_id
join stack_profile_frame f on f.id = c.frame_id
join stack_profile_mapping m on m.id = f.mapping
where a.heap_name = 'python.obj' group by 1, 2, 3
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    script = tmp_path / "shop.py"
    script.write_text(SHOP)
    return script


def held(loaded: Any) -> dict[str, list[tuple[int, int]]]:
    """Return, by the function that allocated, (bytes held, bytes allocated) of each process."""
    found: dict[str, list[tuple[int, int]]] = {}
    for _, name, _, size, allocated, _ in loaded.query(HELD):
        found.setdefault(name, []).append((size, allocated))
    return found


def test_record_shows_what_the_program_and_its_children_hold(
    oracle: Any, tmp_path: Path, shop: Path
) -> None:
    run = record(tmp_path / "t.pftrace", "--heap=4k", str(shop), "children")
    assert run.status == 0
    assert run.stderr.count("Traceback") == 0
    (line,) = [line for line in run.stderr.splitlines() if line.startswith("  memory: ")]
    assert re.search(r"memory: \S.* holds \d.* MiB, \d.* MiB of it allocated by \S", line)
    loaded = check_trace(oracle, run.trace)
    functions = held(loaded)
    generators = [size for size, _ in functions["keep.<locals>.<genexpr>"]]
    assert len(generators) == 2  # The program, and the child of the fork.
    # The standard error of 6 MB, sampled every 4 KiB, is 2.5 %.
    assert all(abs(size - 6 * MB) < 0.6 * MB + 0.05 * MB for size in generators)
    # On CPython 3.11 a comprehension is a function of its own.
    spent = [sizes for name in functions if name.startswith("spend") for sizes in functions[name]]
    assert sum(size for size, _ in spent) < MB
    assert abs(sum(allocated for _, allocated in spent) - 40 * MB) < 4 * MB
    command = [*functions.get("<module>", []), *functions.get("<listcomp>", [])]
    assert any(size > 5 * MB for size, _ in command)
    files = {file for _, _, file, *_ in loaded.query(HELD)}
    assert str(shop) in files
    heaps = {name for (name,) in loaded.query("select heap_name from heap_profile_allocation")}
    assert heaps <= {"python.obj", "python.mem", "python.raw"}


def test_threads_of_the_profiler_are_not_counted_as_blocked(tmp_path: Path) -> None:
    code = "import time; time.sleep(0.5)"  # sleep: what is counted
    run = record(tmp_path / "t.pftrace", "--heap", "-c", code)
    told = re.search(r"threads: .* ([\d.]+) ms blocked", run.stderr)
    assert told
    assert float(told[1]) < 800


def test_record_of_the_maximum_shows_what_was_held_then(oracle: Any, tmp_path: Path) -> None:
    script = tmp_path / "peak.py"
    script.write_text(
        "def peak():\n    return [bytes(1000) for _ in range(6144)]\n"
        "def low():\n    return [bytes(1000) for _ in range(600)]\n"
        "peak()\nkept = low()\n"
    )
    run = record(tmp_path / "t.pftrace", "--heap=4k", "--heap-max", str(script))
    assert run.status == 0
    functions = held(check_trace(oracle, run.trace))
    peaks = [size for name in functions if "peak" in name for size, _ in functions[name]]
    assert abs(sum(peaks) - 6 * MB) < 0.7 * MB
    assert not any("low" in name for name in functions)


COUNTERS = """
select t.name, count(*), min(c.value), max(c.value), sum(c.ts > s.ts)
from counter c join process_counter_track t on t.id = c.track_id join process using (upid),
(select ts from slice where name like 'churn%' order by ts limit 1) s
where process.pid is not null and t.name like '% by %(busy.py)' group by 1
"""


def test_functions_that_hold_and_allocate_most_have_counters(oracle: Any, tmp_path: Path) -> None:
    script = tmp_path / "busy.py"
    script.write_text(
        "import time\nkept = []\n"
        "def hold():\n    kept.extend(map(bytes, [1000] * 6144))\n"
        "def churn():\n    for _ in range(40): list(map(bytes, [1000] * 1000))\n"
        # sleep: the counters are looked at twice a second.
        "hold()\ntime.sleep(0.8)\nchurn()\ntime.sleep(0.8)\n"
    )
    run = record(tmp_path / "t.pftrace", "--heap=4k", str(script))
    assert run.status == 0
    loaded = check_trace(oracle, run.trace)
    counters = {name: values for name, *values in loaded.query(COUNTERS)}
    _, _, most, _ = counters["held by hold (busy.py)"]
    assert abs(most - 6 * MB) < 0.7 * MB
    looks, least, _, after = counters["allocated by churn (busy.py)"]
    assert looks == after >= 2
    assert least == 0  # A rate while it ran, and then 0.
    # A look may find the list of 1 MB that is alive.
    assert counters.get("held by churn (busy.py)", [0, 0, 0])[2] < 2 * MB


CONNECTED = """
import stretto
stretto.connect()
kept = []
def allocate(count):
    kept.append([bytes(1000) for _ in range(count)])
"""


def heap_config(**options: Any) -> TraceConfig:
    source = DataSourceConfig(
        name="python.heap",
        heapprofd_config=HeapprofdConfig(sampling_interval_bytes=4096, **options),
    )
    return TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=8192)],
        data_sources=[TraceConfig.DataSource(config=source)],
    )


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    address = str(tmp_path / "producer.sock")
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", address)
    return address


@pytest.fixture
def program(address: str) -> Iterator[tuple[ServiceProcess, LiveProgram]]:
    with ServiceProcess(address) as service, LiveProgram(CONNECTED) as program:
        service.wait_for_producers(1)
        yield service, program


def running(program: LiveProgram) -> None:
    program.wait_for("__import__('stretto.profilers.heap').profilers.heap.HeapProfile.instances()")


def test_connected_program_is_profiled_while_it_runs(
    oracle: Any, program: tuple[ServiceProcess, LiveProgram]
) -> None:
    service, live = program
    live.run("allocate(3000)")  # Before the session: unknown to it.
    service.start("one", heap_config())
    running(live)
    live.run("allocate(6144)")
    assert live.run("__import__('stretto.profilers.heap').profilers.heap.dump()") == 1
    live.run("allocate(6144)")
    loaded = check_trace(oracle, service.stop("one"))
    by_dump = loaded.query(
        "select a.ts, sum(a.size) from heap_profile_allocation a"
        " join stack_profile_callsite c on c.id = a.callsite_id"
        " join stack_profile_frame f on f.id = c.frame_id"
        " where f.name like 'allocate%' and heap_name = 'python.obj' group by 1 order by 1"
    )
    assert len(by_dump) == 2
    assert all(abs(size - 6 * MB) < 0.7 * MB for _, size in by_dump)
    assert live.run("len(kept)") == 3


def test_second_session_is_refused_and_a_later_one_starts_at_zero(
    oracle: Any, program: tuple[ServiceProcess, LiveProgram]
) -> None:
    service, live = program
    service.start("one", heap_config())
    running(live)
    service.start("two", heap_config())
    live.wait_for("len(__import__('stretto').profilers.heap.HeapProfile.instances()) == 2")
    live.run("allocate(2000)")
    refused = oracle(service.stop("two"))
    assert refused.query(
        "select value > 0 from stats where name = 'heapprofd_rejected_concurrent' and value"
    )
    assert held(oracle(service.stop("one")))
    service.start("three", heap_config())
    live.wait_for("len(__import__('stretto').profilers.heap.HeapProfile.instances()) == 1")
    loaded = check_trace(oracle, service.stop("three"))
    assert not any(name.startswith("allocate") for name in held(loaded))


def test_only_the_named_heaps_and_processes_are_profiled(
    oracle: Any, program: tuple[ServiceProcess, LiveProgram]
) -> None:
    service, live = program
    service.start("mem", heap_config(heaps=["python.mem"]))
    service.start("other", heap_config(pid=[1]))
    live.wait_for("len(__import__('stretto').profilers.heap.HeapProfile.instances()) == 2")
    live.run("allocate(2000)")
    loaded = check_trace(oracle, service.stop("mem"))
    assert {name for (name,) in loaded.query("select heap_name from heap_profile_allocation")} == {
        "python.mem"
    }
    assert not any(packet.has("profile_packet") for packet in decode_packets(service.stop("other")))


ENDS = """
import os, signal, sys

def keep():
    return list(map(bytes, [1000] * (6 << 10)))

kept = keep()
end = sys.argv[1]
if end == "_exit":
    os._exit(0)
elif end == "abort":
    os.abort()
elif end == "exec":
    os.execvp("true", ["true"])
elif end == "exec that fails":
    try:
        os.execv(__file__, ["x"])
    except OSError:
        pass
    os._exit(0)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["_exit", "abort", "exec", "exec that fails"])
def test_program_that_ends_without_exit_handlers_has_a_dump(
    oracle: Any, tmp_path: Path, end: str
) -> None:
    script = tmp_path / "ends.py"
    script.write_text(ENDS)
    run = record(tmp_path / "t.pftrace", "--heap=4k", str(script), end)
    assert "\n  memory: " in run.stderr
    assert "no dump was made" not in run.stderr
    loaded = check_trace(oracle, run.trace, complete=end != "abort")
    ((size, allocated),) = held(loaded)["keep"]
    assert (size == 0) == (end == "exec")
    assert allocated > 5 * MB


def test_summary_says_that_a_killed_program_has_no_dump(tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text(ENDS)
    run = record(tmp_path / "t.pftrace", "--heap=4k", str(script), "kill")
    assert run.status == -9
    assert "\n  memory: no dump was made: " in run.stderr
