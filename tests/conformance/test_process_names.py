"""Perfetto's trace processor shows the right process name if several packets name it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stretto.protos.config import (
    DataSourceConfig,
    ProcessStatsConfig,
    TraceConfig,
    TrackEventConfig,
)
from stretto.protos.trace import (
    ProcessDescriptor,
    ProcessTree,
    Trace,
    TracePacket,
    TrackDescriptor,
)
from tests.conformance.differential.services import ours, perfetto
from tests.support import newer_debian
from tests.support.polling import wait_until
from tests.support.recorded import check_trace, record
from tests.support.system_consumer import SystemConsumer
from tests.support.traced import Process, ProcessGroup, closing_all

PID = 7
SOCKETS = "PERFETTO_PRODUCER_SOCK_NAME", "PERFETTO_CONSUMER_SOCK_NAME"


def _described(timestamp: int) -> TracePacket:
    process = ProcessDescriptor(pid=PID, process_name="shop.py")
    return TracePacket(
        timestamp=timestamp,
        trusted_packet_sequence_id=1,
        sequence_flags=TracePacket.SEQ_INCREMENTAL_STATE_CLEARED,
        track_descriptor=TrackDescriptor(uuid=99, process=process),
    )


def _listed(timestamp: int, *words: str) -> TracePacket:
    process = ProcessTree.Process(pid=PID, ppid=1, cmdline=list(words))
    tree = ProcessTree(processes=[process])
    return TracePacket(timestamp=timestamp, trusted_packet_sequence_id=2, process_tree=tree)


def test_process_name_comes_from_the_process_tree_and_not_from_a_track_descriptor(
    oracle: Any,
) -> None:
    python = ("/usr/bin/python3", "shop.py")
    alone = [_described(1)]
    before, after = [_listed(1, *python), _described(2)], [_described(1), _listed(2, *python)]
    names = [
        oracle(Trace(packet=packets).encode()).query(
            f"select name, cmdline from process where pid = {PID}"
        )
        for packets in (alone, before, after)
    ]
    assert names == [
        [("shop.py", None)],
        [("/usr/bin/python3", "/usr/bin/python3 shop.py")],
        [("/usr/bin/python3", "/usr/bin/python3 shop.py")],
    ]


JOB = """
import multiprocessing, os, subprocess, sys

def square(number):
    return number * number

if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            pool.map(square, range(3))
            pool.close()
            pool.join()
    subprocess.run([sys.executable, "-c", "import this"], stdout=subprocess.DEVNULL)
    subprocess.run([sys.executable, "-m", "json.tool", "--help"], stdout=subprocess.DEVNULL)
"""
PROCESSES = """
select p.name, p.cmdline, parent.name, p.start_ts > parent.start_ts
from process p left join process parent on parent.upid = p.parent_upid
where p.cmdline is not null and p.name != 'multiprocessing resource_tracker' order by p.start_ts
"""


def test_processes_of_a_program_have_names_command_lines_parents_and_start_times(
    tmp_path: Path, oracle: Any
) -> None:
    script = tmp_path / "job.py"
    script.write_text(JOB)
    run = record(tmp_path / "trace", "--no-functions", str(script), "7", PYTHONWARNINGS="ignore")
    assert run.status == 0, run.stderr
    processes = check_trace(oracle, run.trace, complete=False).query(PROCESSES)
    assert [row[:3] for row in processes] == [
        ("job.py", "job.py 7", None),
        ("job.py ForkPoolWorker-1", "job.py ForkPoolWorker-1 7", "job.py"),
        ("job.py SpawnPoolWorker-2", "job.py SpawnPoolWorker-2 7", "job.py"),
        ("python -c import this", "python -c import this ", "job.py"),
        ("-m json.tool", "-m json.tool --help", "job.py"),
    ]
    assert [row[3] for row in processes] == [None, 1, 1, 1, 1]


def test_no_args_option_leaves_out_the_arguments_on_command_lines(
    tmp_path: Path, oracle: Any
) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'secret = 1'])\n"
        "import logging; logging.warning('late')"
    )
    run = record(tmp_path / "trace", "--no-args", str(script), "--password=secret")
    assert run.status == 0, run.stderr
    assert "private: the trace holds log records (--no-logs), messages of ex" in run.stderr
    assert b"secret" not in run.trace
    names = check_trace(oracle, run.trace, complete=False).query(PROCESSES)
    assert [row[0] for row in names] == ["job.py", "python -c"]


PROGRAM = """
import sys
import stretto

stretto.connect()
category = stretto.Category("shop")
print("ready", flush=True)
for _ in sys.stdin:
    category.instant("order")
"""


@pytest.mark.thorough
@pytest.mark.once
@pytest.mark.xdist_group("tracefs")  # Perfetto's producer resets tracefs when it starts.
@pytest.mark.parametrize("kind", ["stretto", "v56"])
def test_process_named_by_stretto_keeps_its_name_despite_process_stats(
    kind: str, tmp_path: Path, oracle: Any
) -> None:
    if (reason := newer_debian.missing()) is not None:
        pytest.skip(reason)
    script = tmp_path / "shop.py"
    script.write_text(PROGRAM)
    with {"stretto": ours, "v56": perfetto}[kind](tmp_path / "s") as service, closing_all() as all_:
        sockets = dict(zip(SOCKETS, service.sockets, strict=True))
        environment = {**os.environ, **sockets}
        probes = newer_debian.command("traced_probes", tmp_path, Path(service.sockets[0]).parent)
        all_.append(ProcessGroup(*probes, env=environment, stderr=subprocess.DEVNULL))
        program = Process(sys.executable, str(script), "--port", "80", env=environment)
        all_.append(program)
        assert program.line() == "ready\n"
        consumer = SystemConsumer(service.sockets[1])
        all_.append(consumer)
        consumer.wait_for_producers("shop.py")
        wait_until(lambda: _offers_process_stats(consumer), "traced_probes")
        consumer.enable(_config())
        consumer.process_events(500)  # both producers write packets when the session starts
        program.write_line("")
        consumer.process_events(100)
        consumer.stop()
        trace = consumer.read()
    listed = oracle(trace).query(f"select name, cmdline from process where pid = {program.pid}")
    assert listed == [("shop.py", "shop.py --port 80")]


def _offers_process_stats(consumer: SystemConsumer) -> bool:
    return any(
        source.ds_descriptor is not None and source.ds_descriptor.name == "linux.process_stats"
        for source in consumer.state().data_sources
    )


def _config() -> TraceConfig:
    stats = DataSourceConfig(
        name="linux.process_stats",
        process_stats_config=ProcessStatsConfig(
            scan_all_processes_on_start=True, proc_stats_poll_ms=100
        ),
    )
    events = DataSourceConfig(
        name="track_event", track_event_config=TrackEventConfig(enabled_categories=["shop"])
    )
    return TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=16384)],
        data_sources=[TraceConfig.DataSource(config=stats), TraceConfig.DataSource(config=events)],
    )
