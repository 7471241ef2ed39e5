"""A program reconnects to killed and restarted services without leaking resources."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.protos.config import TraceConfig
from tests.support.call_slices import session_config, track_events
from tests.support.live_program import LiveProgram
from tests.support.service_process import ServiceProcess

PROGRAM = """
import gc, os, threading
import stretto
app = stretto.Category("app")
connection = stretto.connect()

def left():
    '''What this process has of the kernel.'''
    gc.collect()
    paths = ["/proc/self/fd/" + name for name in os.listdir("/proc/self/fd")]
    kinds = [os.readlink(path).split("[")[0] for path in paths if os.path.exists(path)]
    maps = sum("perfetto_shmem" in line for line in open("/proc/self/maps"))
    return sorted(kinds), len(os.listdir("/proc/self/task")), maps

def left_at_most(kinds, threads, maps):
    now = left()
    return len(now[0]) <= len(kinds) and now[1] <= threads and now[2] <= maps

def write_in_threads(name):
    threads = [threading.Thread(target=app.instant, args=(name,)) for _ in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    app.instant(name)
"""


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    address = str(tmp_path / "producer.sock")
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", address)
    return address


def names(trace: bytes) -> list[str]:
    return [event.name for event in track_events(trace) if event.name]


def record(service: ServiceProcess, program: LiveProgram, name: str, *, whole: bool) -> None:
    """Start a session, and write events; if `whole`, stop the session and check its trace."""
    service.start("one", session_config("app"))
    program.wait_for("app.enabled")
    program.run(f"write_in_threads({name!r})")
    if whole:
        assert names(service.stop("one")) == [name] * 4


@pytest.mark.thorough
@pytest.mark.parametrize("startup", [False, True])
def test_killed_services_leave_no_threads_memory_or_descriptors(
    address: str, startup: bool
) -> None:
    with LiveProgram(PROGRAM) as program:
        first: tuple[list[str], int, int] | None = None
        for number in range(6):
            if startup:
                encoded = session_config("app").encode()
                program.run(f"startup = stretto.setup_startup_tracing({encoded!r}, timeout_ms=1e6)")
                program.run("app.instant('early')")
            with ServiceProcess(address) as service:
                service.wait_for_producers(1)
                program.wait_for("connection.connected")
                if startup:
                    service.start("adopting", session_config("app"))
                    program.wait_for("startup.state == 'adopted'")
                    assert names(service.stop("adopting")) == ["early"]
                record(service, program, f"session {number}", whole=number % 2 == 0)
                first = first or program.run("left()")
                # Wait until no more resources are open than after the first round.
                program.wait_for(f"left_at_most(*{first})")
                service.kill()
            program.wait_for("not app.enabled and not connection.connected")
            program.run("write_in_threads('nowhere')")
        program.run("stretto.disconnect()")
        # Until the next session, the client keeps the last arbiter and the arbiter's memory. The
        # program's `connection` object keeps two sockets, because its thread may start again.
        program.wait_for("left_at_most(['pipe:'] * 3 + ['socket:'] * 2, 1, 1)")


def test_trigger_reaches_a_service_that_starts_before_the_trigger_expires(address: str) -> None:
    config = session_config("app")
    config.trigger_config = TraceConfig.TriggerConfig(
        trigger_mode=TraceConfig.TriggerConfig.START_TRACING,
        trigger_timeout_ms=60_000,
        triggers=[TraceConfig.TriggerConfig.Trigger(name="now", stop_delay_ms=60_000)],
    )
    with LiveProgram(PROGRAM) as program:
        program.run("stretto.activate_triggers(['now'], ttl_ms=60_000)")
        program.run("stretto.activate_triggers(['too late'])")
        with ServiceProcess(address) as service:
            service.start("waiting", config)
            service.wait_for_producers(1)
            program.wait_for("app.enabled")
            program.run("app.instant('triggered')")
            assert names(service.stop("waiting")) == ["triggered"]

            service.start("again", config)
            program.run("app.instant('not yet')")
            program.run("stretto.activate_triggers(['now'])")
            program.wait_for("app.enabled")
            program.run("app.instant('triggered again')")
            assert names(service.stop("again")) == ["triggered again"]
