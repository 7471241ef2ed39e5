"""With startup tracing, events from before the service starts are in the trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig
from stretto.testing.decoded_packets import decode_packets
from tests.support.call_slices import track_events
from tests.support.live_program import LiveProgram
from tests.support.recorded import names as trace_names
from tests.support.recorded import record
from tests.support.service_process import ServiceProcess
from tests.support.traced import Daemon, closing_all, daemon_environment

CONFIG = """
buffers { size_kb: 4096 }
data_sources { config { name: "track_event" track_event_config {
  enabled_categories: "app" enabled_categories: "other" disabled_categories: "*" } } }
data_sources { config { name: "of another program" } }
"""

START = f"""
import sys, threading, time
import stretto
app = stretto.Category("app")
ends = []
def descriptors():
    import os
    found = []
    for name in os.listdir("/proc/self/fd"):
        try: found.append(os.readlink("/proc/self/fd/" + name))
        except OSError: pass  # closed meanwhile
    return sorted(found)
def threads():
    import os
    return len(os.listdir("/proc/self/task"))
def is_written(name):
    lost = stretto._native.instance_counts(0)[1]
    app.instant(name)
    return stretto._native.instance_counts(0)[1] == lost
def start(**options):
    return stretto.setup_startup_tracing('''{CONFIG}''',
        on_adopted=lambda: ends.append("adopted"), on_aborted=lambda: ends.append("aborted"),
        **options)
"""


def session_config(*categories: str, **options: bool) -> TraceConfig:
    track_event = TrackEventConfig(
        enabled_categories=categories or ("other", "app"), disabled_categories=["*"], **options
    )
    source = DataSourceConfig(name="track_event", track_event_config=track_event)
    return TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=1024), TraceConfig.BufferConfig(size_kb=4096)],
        data_sources=[TraceConfig.DataSource(config=source)],
    )


def names(trace: bytes) -> list[str]:
    return [event.name for event in track_events(trace) if event.name]


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    address = str(tmp_path / "producer.sock")
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", address)
    return address


class TestAdoptedStartupSession:
    def test_startup_session_is_adopted_by_a_service_that_starts_later(self, address: str) -> None:
        with LiveProgram(START + "session = start(timeout_ms=60000)\n") as program:
            program.run("app.instant('before')")
            program.run("t = threading.Thread(target=app.instant, args=('thread',)); t.start()")
            program.run("t.join()")
            assert program.run("session.num_data_sources_started") == 1
            assert program.run("session.state") == "recording"
            with ServiceProcess(address) as service:
                service.wait_for_producers(1)
                program.run("app.instant('connected')")
                service.start("one", session_config())
                program.wait_for("session.state == 'adopted'")
                program.run("app.instant('during')")
                trace = service.stop("one")
                assert sorted(names(trace)) == ["before", "connected", "during", "thread"]
                assert "memfd:perfetto_shmem" not in str(program.run("descriptors()"))
                program.run("app.instant('after')")
                assert program.run("ends") == ["adopted"]

                service.start(
                    "two", session_config()
                )  # after the adopted session, a second session records
                program.wait_for("app.enabled")
                program.run("app.instant('second')")
                assert names(service.stop("two")) == ["second"]

    def test_startup_session_is_adopted_by_a_running_session(self, address: str) -> None:
        with ServiceProcess(address) as service:
            service.start("one", session_config())
            program = LiveProgram(START + "session = start()\napp.instant('first line')\n")
            with program:
                program.wait_for("session.state == 'adopted'")
                program.run("app.instant('later')")
                assert names(service.stop("one")) == ["first line", "later"]

    def test_startup_session_is_adopted_after_a_connection_without_a_session(
        self, address: str
    ) -> None:
        with (
            ServiceProcess(address) as service,
            LiveProgram(START + "connection = stretto.connect()\n") as program,
        ):
            program.wait_for("connection.connected")
            program.run("session = start(); app.instant('before')")
            program.wait_for("connection.connected")
            service.start("one", session_config())
            program.wait_for("session.state == 'adopted'")
            assert names(service.stop("one")) == ["before"]
            assert len(service.wait_for_producers(1)) == 1

    def test_startup_session_is_adopted_while_another_session_records(self, address: str) -> None:
        with (
            ServiceProcess(address) as service,
            LiveProgram(START + "connection = stretto.connect()\n") as program,
        ):
            program.wait_for("connection.connected")
            service.start("running", session_config("app"))
            program.wait_for("app.enabled")
            program.run("app.instant('one')")
            program.run("session = start(); app.instant('two')")
            service.start("wanted", session_config())
            program.wait_for("session.state == 'adopted'")
            program.run("app.instant('three')")
            assert names(service.stop("wanted")) == ["two", "three"]
            assert names(service.stop("running")) == ["one", "two", "three"]

    def test_functions_are_traced_before_the_service_starts(self, address: str) -> None:
        config = session_config("app", "python.functions")
        setup = START.replace('"other"', '"python.functions"')
        work = "session = start()\ndef work(): pass\nwork()\n"
        with LiveProgram(setup + work) as program, ServiceProcess(address) as service:
            service.start("one", config)
            program.wait_for("session.state == 'adopted'")
            assert "work" in " ".join(names(service.stop("one")))

    def test_config_file_in_the_environment_starts_tracing(
        self, address: str, tmp_path: Path
    ) -> None:
        file = tmp_path / "startup.pbtxt"
        file.write_text(CONFIG)
        setup = "import stretto; stretto.connect(); app = stretto.Category('app')\n"
        with (
            LiveProgram(
                setup + "app.instant('before')\n",
                environment={"STRETTO_STARTUP_CONFIG": str(file)},
            ) as program,
            ServiceProcess(address) as service,
        ):
            service.wait_for_producers(1)
            service.start("one", session_config())
            # The service may have adopted the startup session already.
            program.run("app.instant('during')")
            assert names(service.stop("one")) == ["before", "during"]


class TestAbortedStartupSession:
    @pytest.mark.parametrize("how", ["timeout", "abort", "disconnect"])
    def test_startup_session_without_a_service_is_aborted(self, address: str, how: str) -> None:
        setup = START + "stretto.connect()\nbefore = descriptors(), threads()\n"
        with LiveProgram(setup) as program:
            timeout = 1 if how == "timeout" else 60_000
            program.run(f"session = start(timeout_ms={timeout}); app.instant('lost')")
            if how == "abort":
                program.run("session.abort(); session.abort()")
            elif how == "disconnect":
                program.run("stretto.disconnect()")
            program.wait_for("ends == ['aborted']")
            assert program.run("session.state") == "aborted"
            assert not program.run("app.enabled")
            assert "memfd" not in str(program.run("descriptors()"))
            if how != "disconnect":
                with ServiceProcess(address) as service:
                    service.wait_for_producers(1)
                    service.start("one", session_config())
                    program.wait_for("app.enabled")
                    program.run("app.instant('kept')")
                    assert names(service.stop("one")) == ["kept"]

    def test_startup_session_is_not_adopted_by_a_session_without_its_data_sources(
        self, address: str
    ) -> None:
        with (
            LiveProgram(START + "session = start(timeout_ms=60000)\n") as program,
            ServiceProcess(address) as service,
        ):
            program.run("app.instant('before')")
            service.wait_for_producers(1)
            service.start("one", session_config(filter_debug_annotations=True))
            program.wait_for("len(stretto.client.track_event.slots._configs) == 2")
            assert program.run("session.state") == "recording"
            program.run("app.instant('during')")
            program.run("session.abort()")
            assert names(service.stop("one")) == ["during"]

    def test_chunks_of_an_aborted_session_are_reused(self, address: str) -> None:
        fill = "[app.instant('lost', text='x' * 200) for _ in range(60000)]"
        with (
            LiveProgram(START + "session = start(timeout_ms=60000)\n") as program,
            ServiceProcess(address) as service,
        ):
            program.run(fill)  # `fill` writes more than fits into the shared memory
            service.wait_for_producers(1)
            program.wait_for("stretto.connect().connected")
            program.run("session.abort()")
            service.start("one", session_config("app"))
            program.wait_for("app.enabled")
            program.run("for _ in range(1000): app.instant('kept', text='x' * 200)")
            assert names(service.stop("one")) == ["kept"] * 1000

    def test_startup_session_is_aborted_when_the_service_dies(self, address: str) -> None:
        with LiveProgram(START + "session = start(timeout_ms=60000)\n") as program:
            with ServiceProcess(address) as service:
                service.wait_for_producers(1)
                program.wait_for("stretto.connect().connected")
                program.run("app.instant('lost')")
                service.kill()
            program.wait_for("ends == ['aborted']")
            with ServiceProcess(address) as service:
                service.wait_for_producers(1)
                service.start("one", session_config())
                program.wait_for("app.enabled")
                program.run("app.instant('kept')")
                assert names(service.stop("one")) == ["kept"]

    def test_startup_session_without_a_known_data_source_is_aborted(self, address: str) -> None:
        with LiveProgram(START) as program:
            program.run("config = 'data_sources { config { name: \"elsewhere\" } }'")
            program.run("session = stretto.setup_startup_tracing(config)")
            assert program.run("session.state, session.num_data_sources_started") == ("aborted", 0)

    def test_unreadable_config_file_in_the_environment_is_reported(self, address: str) -> None:
        setup = "import sys; seen = []\nsys.unraisablehook = lambda u: seen.append(u.exc_value)\n"
        setup += "import stretto; connection = stretto.connect()\n"
        environment = {"STRETTO_STARTUP_CONFIG": "/nowhere/config.pbtxt"}
        with (
            LiveProgram(setup, environment=environment) as program,
            ServiceProcess(address) as service,
        ):
            service.wait_for_producers(1)
            assert "/nowhere/config.pbtxt" in program.run("str(seen[0])")


def test_startup_events_that_do_not_fit_the_shared_memory_are_dropped_and_counted(
    address: str,
) -> None:
    with (
        LiveProgram(START + "session = start(timeout_ms=60000)\n") as program,
        ServiceProcess(address) as service,
    ):
        program.run("for i in range(60000): app.instant('e', text='x' * 200, number=i)")
        service.start("one", session_config())
        program.wait_for("session.state == 'adopted'")
        program.wait_for("is_written('last')")  # writes fail until the service has freed chunks
        trace = service.stop("one")
    events = names(trace)
    assert events[0] == "e"
    assert events[-1] == "last"
    assert 1000 < len(events) < 60000
    assert any(packet.previous_packet_dropped for packet in decode_packets(trace))


def test_forked_child_does_not_use_the_startup_session(address: str) -> None:
    fork = """
import os
def fork():
    child = os.fork()
    if child == 0:
        app.instant("child")
        os._exit(0 if session.state == "aborted" and not app.enabled else 1)
    return os.waitpid(child, 0)[1]
"""
    with LiveProgram(START + fork + "session = start(timeout_ms=60000)\n") as program:
        program.run("app.instant('before')")
        assert program.run("fork()") == 0
        program.run("app.instant('between')")
        with ServiceProcess(address) as service:
            service.wait_for_producers(1)
            assert program.run("fork()") == 0
            service.start("one", session_config())
            program.wait_for("session.state == 'adopted'")
            assert names(service.stop("one")) == ["before", "between"]


@pytest.mark.parametrize("system", [False, True])
def test_program_with_startup_tracing_can_be_recorded(
    tmp_path: Path, oracle: Any, system: bool
) -> None:
    """If the machine's service already records the program, the startup session is aborted."""
    (tmp_path / "sockets").mkdir()
    state = "aborted" if system else "recording"
    program = tmp_path / "app.py"
    program.write_text(
        START + "session = start(timeout_ms=60000)\n"
        f"assert session.state == {state!r}, session.state\n"
        "app.instant('recorded')\n"
    )
    with closing_all() as opened:
        environment = daemon_environment(tmp_path / "sockets")
        if system:
            opened.append(Daemon(tmp_path / "sockets"))
        arguments = ["--system"] if system else []
        run = record(tmp_path / "trace.pftrace", *arguments, str(program), **environment)
    assert run.status == 0, run.stderr
    assert "recorded" in trace_names(oracle(run.trace))
