"""An instance of tracefs that a config names is restored, also after a kill of `stretto probes`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stretto.probes.tracefs import Folder, Tracefs, TracefsError
from stretto.protos.config import DataSourceConfig, FtraceConfig, TraceConfig
from tests.support.polling import wait_until
from tests.support.traced import Daemon, Process, closing_all

FILES = (
    "buffer_percent",
    "buffer_size_kb",
    "events/raw_syscalls/sys_enter/filter",
    "options/overwrite",
    "set_event",
    "set_event_pid",
    "trace_clock",
    "tracing_cpumask",
    "tracing_on",
)
NAME = f"restored-{os.getpid()}"
CONFIG = FtraceConfig(
    instance_name=NAME,
    ftrace_events=["task/*"],
    syscall_events=["sys_read"],
    buffer_size_kb=64,
    drain_buffer_percent=10,
    tids_to_trace=[1, 2],
    tracing_cpumask="1",
    tracefs_options=[FtraceConfig.TracefsOption(name="overwrite", state=2)],
    use_monotonic_raw_clock=True,
)


@pytest.fixture
def instance() -> Iterator[Folder]:
    """Make an instance, as a user does."""
    try:
        path = Path(Tracefs("/").path, "instances", NAME)
        path.mkdir()
    except (TracefsError, OSError) as error:
        pytest.skip(f"no instance of ftrace can be made: {error}")
    yield Folder(str(path))
    path.rmdir()


def state(folder: Folder) -> dict[str, str]:
    return {name: folder.read(name) for name in FILES}


@contextmanager
def recording(folder: Path, ftrace: FtraceConfig) -> Iterator[Process]:
    """Record while the caller looks; it may kill the process."""
    with closing_all() as opened:
        daemon = Daemon(folder)
        opened.append(daemon)
        consumer = daemon.consumer()
        opened.append(consumer)
        command = [sys.executable, "-m", "stretto", "probes"]
        probes = Process(*command, env=daemon.environment, stderr=subprocess.DEVNULL)
        opened.append(probes)
        wait_until(
            lambda: any(
                source.ds_descriptor and source.ds_descriptor.name == "linux.ftrace"
                for source in consumer.state().data_sources
            ),
            "the data source",
        )
        source = DataSourceConfig(name="linux.ftrace", ftrace_config=ftrace)
        consumer.enable(
            TraceConfig(
                buffers=[TraceConfig.BufferConfig(size_kb=1024)],
                data_sources=[TraceConfig.DataSource(config=source)],
            )
        )
        yield probes
        if probes.popen.poll() is None:
            consumer.stop()


def test_named_instance_is_restored_at_the_end_and_after_a_kill(
    tmp_path: Path, instance: Folder
) -> None:
    before = state(instance)
    with recording(tmp_path, CONFIG):
        wait_until(lambda: instance.read("set_event"), "the events")
        wait_until(lambda: instance.read("tracing_on") == "1\n", "the start")
    wait_until(lambda: state(instance) == before, "the end")
    with recording(tmp_path, CONFIG) as probes:
        wait_until(lambda: instance.read("buffer_percent") == "10\n", "the last change")
        probes.signal(signal.SIGKILL)
        probes.wait()
    changed = {name for name, text in state(instance).items() if text != before[name]}
    assert len(changed) >= len(FILES) - 1
    with recording(tmp_path, FtraceConfig(ftrace_events=["task/*"])):
        wait_until(lambda: state(instance) == before, "the next session")
