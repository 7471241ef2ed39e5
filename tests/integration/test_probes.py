"""`stretto probes`, started as users start it, with `stretto traced` as its service."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stretto.protos.config import (
    DataSourceConfig,
    ProcessStatsConfig,
    SysStatsConfig,
    TraceConfig,
)
from stretto.protos.trace import Trace
from tests.support.polling import wait_until
from tests.support.system_consumer import SystemConsumer
from tests.support.traced import Daemon, Process, closing_all, daemon_environment

COMMAND = [sys.executable, "-m", "stretto", "probes"]
NAMES = {
    "linux.ftrace",
    "linux.perf",
    "perfetto.metatrace",
    "linux.process_stats",
    "linux.sys_stats",
    "linux.system_info",
}


@pytest.fixture
def opened() -> Iterator[list[Any]]:
    with closing_all() as things:
        yield things


def started_probes(folder: Path, opened: list[Any]) -> Process:
    probes = Process(*COMMAND, env=daemon_environment(folder), stderr=subprocess.PIPE)
    opened.append(probes)
    return probes


def connected(folder: Path, opened: list[Any]) -> tuple[Daemon, SystemConsumer]:
    """Start a service; return it and a consumer."""
    daemon = Daemon(folder)
    opened.append(daemon)
    consumer = daemon.consumer()
    opened.append(consumer)
    return daemon, consumer


def offered(consumer: SystemConsumer) -> set[str]:
    """Return the data sources that the producer `stretto.probes` has registered."""
    state = consumer.state()
    ids = [producer.id for producer in state.producers if producer.name == "stretto.probes"]
    return {
        source.ds_descriptor.name
        for source in state.data_sources
        if source.ds_descriptor is not None and source.producer_id in ids
    }


BRIEF = (
    DataSourceConfig(name="linux.sys_stats", sys_stats_config=SysStatsConfig(psi_period_ms=10_000)),
    DataSourceConfig(name="linux.system_info"),
)


def recorded(consumer: SystemConsumer, *sources: DataSourceConfig) -> Trace:
    """Record data sources until each has written its first packets."""
    config = TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=4096)],
        data_sources=[TraceConfig.DataSource(config=source) for source in sources or BRIEF],
    )
    events: list[Any] = []
    consumer.enable(config)
    consumer.endpoint.observe_events(2, events.append)
    consumer.wait(lambda: any(event.all_data_sources_started for event in events))
    consumer.stop()
    return Trace.decode(consumer.read())


def kinds(trace: Trace) -> set[str]:
    fields = ("sys_stats", "cpu_info", "process_tree")
    return {field for packet in trace.packet for field in fields if packet.has(field)}


def test_session_records_the_machine_then_a_signal_ends_the_command(
    tmp_path: Path, opened: list[Any]
) -> None:
    _, consumer = connected(tmp_path, opened)
    probes = started_probes(tmp_path, opened)
    assert probes.line("stderr") == f"stretto probes: connected to {tmp_path / 'producer'}\n"
    assert offered(consumer) == NAMES
    assert kinds(recorded(consumer)) == {"sys_stats", "cpu_info"}
    probes.signal(signal.SIGTERM)
    assert probes.wait() == 0
    wait_until(lambda: not offered(consumer), "the end of the connection")


def test_probes_connect_to_a_service_that_starts_later_or_restarts(
    tmp_path: Path, opened: list[Any]
) -> None:
    probes = started_probes(tmp_path, opened)
    assert probes.line("stderr").startswith("stretto probes: retrying: ")
    for _ in range(2):
        daemon, consumer = connected(tmp_path, opened)
        wait_until(lambda c=consumer: offered(c) == NAMES, "the data sources")  # type: ignore[misc]
        assert kinds(recorded(consumer)) == {"sys_stats", "cpu_info"}
        daemon.signal(signal.SIGKILL)
        daemon.wait()
    probes.signal(signal.SIGINT)
    assert probes.wait() == 0


def test_command_with_background_returns_when_the_data_sources_are_registered(
    tmp_path: Path, opened: list[Any]
) -> None:
    _, consumer = connected(tmp_path, opened)
    result = subprocess.run(
        [*COMMAND, "--background"],
        env=daemon_environment(tmp_path),
        capture_output=True,
        check=True,
        text=True,
    )
    pid = int(result.stdout)
    try:
        assert offered(consumer) == NAMES
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the daemon")


def test_signals_ignored_by_the_parent_stay_ignored(tmp_path: Path, opened: list[Any]) -> None:
    shell = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh"]
    probes = Process(*shell, *COMMAND, env=daemon_environment(tmp_path), stderr=subprocess.PIPE)
    opened.append(probes)
    assert "retrying" in probes.line("stderr")
    probes.signal(signal.SIGHUP)
    probes.signal(signal.SIGTERM)
    assert probes.wait() == 0


REFUSED = """
buffers { size_kb: 4096 }
data_sources { config { name: "linux.ftrace" ftrace_config { ftrace_events: "a/b/c" } } }
data_sources { config { name: "linux.perf" perf_event_config { target_cpu: 99999 } } }
data_sources { config { name: "linux.system_info" } }
duration_ms: 50
"""
"""No machine can set up the first two of these data sources."""


@pytest.mark.parametrize("writes", ["", "write_into_file: true"])
def test_reasons_of_failed_set_ups_are_on_the_consumers_terminal(
    tmp_path: Path, opened: list[Any], writes: str
) -> None:
    _, consumer = connected(tmp_path, opened)
    started_probes(tmp_path, opened)
    wait_until(lambda: offered(consumer) == NAMES, "the data sources")
    (tmp_path / "config").write_text(REFUSED + writes)
    command = [sys.executable, "-m", "stretto", "trace", "-c", "config", "--txt", "-o", "out"]
    done = subprocess.run(
        command, cwd=tmp_path, env=daemon_environment(tmp_path), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    notes = [line for line in done.stderr.splitlines() if line.startswith("Note: ")]
    assert len(notes) == 2, done.stderr
    assert any(line.startswith("Note: linux.ftrace: ") for line in notes)
    assert "Note: linux.perf: not recorded: no CPU of target_cpu is online" in notes
    assert kinds(Trace.decode((tmp_path / "out").read_bytes())) == {"cpu_info"}


def test_help_shows_the_data_sources_and_a_config() -> None:
    text = subprocess.run([*COMMAND, "--help"], capture_output=True, check=True, text=True).stdout
    assert all(name in text for name in NAMES)
    assert "sys_stats_config {" in text


AS_NOBODY = """
import contextlib, os, sys
import encodings.idna
import stretto.backends.always_on, stretto.backends.runner_thread, stretto.probes.data_sources
from stretto.cli.main import main
import stretto.cli.probes, stretto.client.producer_connection
with contextlib.suppress(SystemExit):
    main(["probes", "--help"])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(main(["probes"]))
"""
"""Imports everything first: another user may not read this interpreter's folder."""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_files_that_only_root_may_read_are_left_out_for_other_users(
    tmp_path: Path, opened: list[Any]
) -> None:
    # An abstract socket has no path, so every user may connect.
    daemon = Daemon(
        tmp_path, environment={"PERFETTO_PRODUCER_SOCK_NAME": f"@stretto-probes-{os.getpid()}"}
    )
    opened.append(daemon)
    consumer = daemon.consumer()
    opened.append(consumer)
    probes = Process(
        sys.executable, "-c", AS_NOBODY, env=daemon.environment, stderr=subprocess.PIPE
    )
    opened.append(probes)
    assert "connected" in probes.line("stderr")
    stats = ProcessStatsConfig(
        proc_stats_poll_ms=60_000, scan_smaps_rollup=True, resolve_process_fds=True
    )
    groups = SysStatsConfig(slab_period_ms=60_000, meminfo_period_ms=60_000)
    trace = recorded(
        consumer,
        DataSourceConfig(name="linux.process_stats", process_stats_config=stats),
        DataSourceConfig(name="linux.sys_stats", sys_stats_config=groups),
    )
    (machine,) = (packet.sys_stats for packet in trace.packet if packet.sys_stats is not None)
    assert machine.meminfo
    assert not machine.slab_info
    (sampled,) = (p.process_stats for p in trace.packet if p.process_stats is not None)
    processes = {process.pid: process for process in sampled.processes}
    assert processes[os.getpid()].vm_size_kb > 0
    assert not processes[os.getpid()].fds
    assert not processes[os.getpid()].has("smr_rss_kb")
    probes.signal(signal.SIGTERM)
    assert probes.wait() == 0
    assert probes.popen.stderr is not None
    assert probes.popen.stderr.read() == b""
