"""Records a session with `stretto probes` and Perfetto's `traced_probes` v56 at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from stretto.probes.tracefs import Tracefs, TracefsError
from stretto.protos.config import DataSourceConfig, FtraceConfig, TraceConfig
from stretto.protos.trace import Trace, TracePacket
from tests.conformance.differential.services import ours
from tests.support import newer_debian
from tests.support.polling import wait_until
from tests.support.system_consumer import SystemConsumer
from tests.support.traced import Process, ProcessGroup, closing_all

NAME = "linux.ftrace"
ALL_STARTED = 2
"""The type of the service's event ALL_DATA_SOURCES_STARTED."""
START_MS = 5_000


class Both(NamedTuple):
    """The packets of each producer, the trace without theirs, and what ours printed."""

    mine: list[TracePacket]
    theirs: list[TracePacket]
    without_theirs: bytes
    printed: str


def skip_if_missing() -> None:
    """Skip the test where the kernel or this user has no ftrace, or v56 can't run."""
    try:
        Tracefs("/")
    except TracefsError as error:
        pytest.skip(str(error))
    if (reason := newer_debian.missing()) is not None:
        pytest.skip(reason)


def record(folder: Path, ftrace: FtraceConfig, work: Callable[[], object]) -> Both:
    """Record a session with both producers.

    Args:
        folder: An empty folder.
        ftrace: The config of both.
        work: Called while both record.
    """
    skip_if_missing()
    with ours(folder) as service, closing_all() as all_:
        names = ("PERFETTO_PRODUCER_SOCK_NAME", "PERFETTO_CONSUMER_SOCK_NAME")
        environment = {**os.environ, **dict(zip(names, service.sockets, strict=True))}
        native = newer_debian.command("traced_probes", folder)
        all_.append(ProcessGroup(*native, env=environment, stderr=subprocess.DEVNULL))
        command = [sys.executable, "-m", "stretto", "probes"]
        with (folder / "printed").open("w") as printed:
            probes = Process(*command, env=environment, stderr=printed)
        all_.append(probes)
        consumer = SystemConsumer(service.sockets[1])
        all_.append(consumer)
        wait_until(lambda: _offers_both(consumer), "both producers")
        _start(consumer, ftrace)
        consumer.process_events(300)
        work()
        consumer.process_events(300)
        assert consumer.flush(60_000)
        consumer.stop()
        trace = Trace.decode(consumer.read())
    mine = [packet for packet in trace.packet if packet.trusted_pid == probes.pid]
    theirs = [p for p in trace.packet if p.trusted_pid != probes.pid and _is_ftrace(p)]
    left_out = set(map(id, theirs))
    kept = Trace(packet=[packet for packet in trace.packet if id(packet) not in left_out])
    return Both(mine, theirs, kept.encode(), (folder / "printed").read_text())


def _offers_both(consumer: SystemConsumer) -> bool:
    names = [s.ds_descriptor.name for s in consumer.state().data_sources if s.ds_descriptor]
    return names.count(NAME) == 2


def _start(consumer: SystemConsumer, ftrace: FtraceConfig) -> None:
    """Start a session, and wait until both record: on a busy machine that takes seconds.

    A data source that v56 could not set up is never acknowledged.
    """
    started: list[object] = []
    consumer.endpoint.observe_events(ALL_STARTED, started.append)
    consumer.enable(_config(ftrace))
    consumer.runner.run_until(lambda: bool(started), START_MS)


def _config(ftrace: FtraceConfig) -> TraceConfig:
    source = DataSourceConfig(name=NAME, ftrace_config=ftrace)
    return TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=262_144)],
        data_sources=[TraceConfig.DataSource(config=source)],
        data_source_stop_timeout_ms=2_000,
    )


def _is_ftrace(packet: TracePacket) -> bool:
    return packet.has("ftrace_events") or packet.has("ftrace_stats")
