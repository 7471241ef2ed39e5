"""TracingSession(backend="system"): a session of a service in another process."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import stretto
from stretto.base.errors import SessionError, TransportError
from stretto.client.tracing import tracing
from stretto.client.track_event.source import TrackEventSource
from stretto.protos.config import DataSourceConfig, TraceConfig
from stretto.testing.decoded_packets import decode_packets
from tests.support.live_program import LiveProgram
from tests.support.polling import wait_until
from tests.support.recorded_events import config, events_of
from tests.support.service_process import ServiceProcess

pytestmark = pytest.mark.xdist_group("system session")  # all tests share one service

CATEGORY = stretto.Category("test.system")
DEADLINE_S = 30


def names(trace: bytes) -> list[str]:
    return [event.name for event in events_of(trace)]


Addresses = tuple[str, str]


def addresses_in(folder: Path) -> Addresses:
    return str(folder / "producer.sock"), str(folder / "consumer.sock")


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Addresses], None]]:
    """Return a function that makes the service at these addresses the machine's service."""

    def use(addresses: Addresses) -> None:
        monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", addresses[0])
        monkeypatch.setenv("PERFETTO_CONSUMER_SOCK_NAME", addresses[1])

    yield use
    backend = tracing.connected("system")
    if backend is not None:
        backend.close()  # type: ignore[attr-defined]
        tracing.forget("system")
    end_remaining_sessions()


def end_remaining_sessions() -> None:
    """Fail if the test left a session open, because a process can have only eight sessions."""
    gc.collect()
    left = TrackEventSource.instances()
    for instance in left:
        instance.end()
    assert not left, f"{len(left)} sessions still record track events"


@pytest.fixture
def start(
    use: Callable[[Addresses], None], tmp_path: Path
) -> Iterator[Callable[[], ServiceProcess]]:
    """Return a function that starts the service; a test can call the function repeatedly."""
    addresses = addresses_in(tmp_path)
    use(addresses)
    services: list[ServiceProcess] = []

    def start() -> ServiceProcess:
        services.append(ServiceProcess(*addresses))
        return services[-1]

    yield start
    for service in services:
        if service.process.returncode is None:
            service.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServiceProcess, Addresses]]:
    addresses = addresses_in(tmp_path_factory.mktemp("service"))
    with ServiceProcess(*addresses) as service:
        yield service, addresses


@pytest.fixture
def service(
    running: tuple[ServiceProcess, Addresses], use: Callable[[Addresses], None]
) -> ServiceProcess:
    """The service that is shared by all tests that don't kill it."""
    use(running[1])
    running[0].wait_for_producers(0)
    return running[0]


def process_trees(trace: bytes) -> list[object]:
    return [packet for packet in decode_packets(trace) if packet.has("process_tree")]


class TestSystemSession:
    def test_recorded_events_can_be_read_after_stop(self, service: ServiceProcess) -> None:
        session = stretto.TracingSession(config(), backend="system")
        session.start()
        assert CATEGORY.enabled  # start() has waited until all data sources run
        for number in range(3000):
            CATEGORY.instant("x", number=number)
        session.stop()
        stats = session.stats()
        trace = session.read()
        session.close()
        found = [event.args["number"] for event in events_of(trace)]
        assert found == list(range(3000))
        assert stats.tracing_sessions == 1
        (packet,) = [each for each in decode_packets(trace) if each.has("system_info")]
        assert packet
        wait_until(lambda: not CATEGORY.enabled)

    def test_in_process_sessions_write_no_process_tree(self, service: ServiceProcess) -> None:
        with stretto.TracingSession(config(), backend="system") as session:
            with stretto.TracingSession(config()) as in_process:
                in_process.stop()
                assert not process_trees(in_process.read())
            session.stop()
            assert process_trees(session.read())

    def test_other_processes_are_recorded(self, service: ServiceProcess) -> None:
        program = "import stretto; app = stretto.Category('app'); stretto.connect()"
        with LiveProgram(program) as other:
            service.wait_for_producers(1)
            with stretto.TracingSession(config(), backend="system") as session:
                CATEGORY.instant("here")
                assert other.run("app.enabled")
                other.run("app.instant('there')")
                assert session.flush()
                first = session.read()
                assert sorted(names(first)) == ["here", "there"]
                other.run("app.instant('later')")
                session.stop()
                assert sorted(names(first + session.read())) == ["here", "later", "there"]

    def test_two_sessions_at_once_use_one_producer(self, service: ServiceProcess) -> None:
        with (
            stretto.TracingSession(config(), backend="system") as one,
            stretto.TracingSession(config(), backend="system") as other,
            stretto.TracingSession(config()) as in_process,
        ):
            CATEGORY.instant("x")
            for session in (one, other, in_process):
                session.stop()
                assert names(session.read()) == ["x"]
            assert len(service.producers()) == 1  # both sessions use the producer of this process

    def test_service_writes_into_a_file_descriptor(
        self, service: ServiceProcess, tmp_path: Path
    ) -> None:
        made = config()
        made.write_into_file = True
        session = stretto.TracingSession(made, backend="system")
        with (tmp_path / "trace").open("wb") as file:
            session.setup(file.fileno())
            session.start()
        CATEGORY.instant("x")
        session.stop()
        session.close()
        assert names((tmp_path / "trace").read_bytes()) == ["x"]

    def test_session_with_a_duration_ends_by_itself(self, service: ServiceProcess) -> None:
        made = config()
        made.duration_ms = 50
        with stretto.TracingSession(made, backend="system") as session:
            session.wait(DEADLINE_S)
            assert session.read()

    def test_trace_of_many_packets_is_read_completely(self, service: ServiceProcess) -> None:
        made = config()
        made.buffers[0].size_kb = 64 << 10
        with stretto.TracingSession(made, backend="system") as session:
            text = "x" * 2000
            for number in range(5000):
                CATEGORY.instant("large", number=number, text=text)
                if number % 500 == 0:
                    session.flush()  # a flush keeps the shared memory from becoming full
            session.stop()
            found = [event.args["number"] for event in events_of(session.read())]
        assert found == list(range(5000))

    def test_threads_can_flush_and_read_at_the_same_time(self, service: ServiceProcess) -> None:
        with stretto.TracingSession(config(), backend="system") as session:
            threads = [
                threading.Thread(target=lambda: [session.flush() for _ in range(20)])
                for _ in range(2)
            ]
            for thread in threads:
                thread.start()
            parts = [session.read() for _ in range(20)]
            for thread in threads:
                thread.join()
            assert any(parts)

    def test_session_ends_when_its_last_reference_is_dropped(self, service: ServiceProcess) -> None:
        session = stretto.TracingSession(config(), backend="system")
        session.start()
        del session
        gc.collect()
        wait_until(lambda: not CATEGORY.enabled)

    def test_deferred_session_does_not_record_before_its_start(
        self, service: ServiceProcess
    ) -> None:
        made = config()
        made.deferred_start = True
        with stretto.TracingSession(made, backend="system"):
            assert not CATEGORY.enabled

    def test_session_uses_the_producer_that_connect_created(self, service: ServiceProcess) -> None:
        stretto.connect()
        try:
            with stretto.TracingSession(config(), backend="system") as session:
                CATEGORY.instant("x")
                session.stop()
                assert names(session.read()) == ["x"]
                assert len(service.producers()) == 1
        finally:
            stretto.disconnect()

    def test_connect_uses_the_producer_that_the_session_created(
        self, service: ServiceProcess
    ) -> None:
        with stretto.TracingSession(config(), backend="system") as session:
            connection = stretto.connect()
            try:
                wait_until(lambda: connection.connected and CATEGORY.enabled)
                CATEGORY.instant("x")
                session.stop()
                assert names(session.read()) == ["x"]
                assert len(service.producers()) == 1
            finally:
                stretto.disconnect()


class TestRefusedSession:
    def test_config_refused_by_the_service_raises_session_error(
        self, service: ServiceProcess
    ) -> None:
        source = TraceConfig.DataSource(config=DataSourceConfig(name="x", target_buffer=7))
        session = stretto.TracingSession(TraceConfig(data_sources=[source]), backend="system")
        with pytest.raises(SessionError, match="buffer"):
            session.start()
        session.close()

    def test_missing_service_is_reported_and_can_start_later(
        self, start: Callable[[], ServiceProcess]
    ) -> None:
        with pytest.raises(TransportError, match="is the tracing service running"):
            stretto.TracingSession(config(), backend="system").start()
        start()
        with stretto.TracingSession(config(), backend="system"):
            assert CATEGORY.enabled

    def test_producer_socket_used_as_consumer_socket_is_reported(
        self, service: ServiceProcess, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        address = os.environ["PERFETTO_PRODUCER_SOCK_NAME"]
        monkeypatch.setenv("PERFETTO_CONSUMER_SOCK_NAME", address)
        with pytest.raises(TransportError, match="give the consumer socket's address"):
            stretto.TracingSession(config(), backend="system").start()


class TestKilledService:
    def test_killed_service_is_reported_by_every_call(
        self, start: Callable[[], ServiceProcess]
    ) -> None:
        service = start()
        session = stretto.TracingSession(config(), backend="system")
        session.start()
        service.kill()
        with pytest.raises(TransportError, match="disconnected"):
            session.wait(DEADLINE_S)
        for call in (session.stop, session.flush, session.read, session.stats):
            with pytest.raises(TransportError, match="disconnected"):
                call()
        session.close()

    def test_session_can_start_again_after_the_service_was_restarted(
        self, start: Callable[[], ServiceProcess]
    ) -> None:
        for _ in range(2):
            service = start()
            with stretto.TracingSession(config(), backend="system") as session:
                CATEGORY.instant("x")
                session.stop()
                assert names(session.read()) == ["x"]
            service.kill()
            backend = tracing.connected("system")
            wait_until(lambda backend=backend: not backend.connected)  # type: ignore[misc]

    def test_service_killed_during_a_flush_is_reported(
        self, start: Callable[[], ServiceProcess]
    ) -> None:
        service = start()
        with stretto.TracingSession(config(), backend="system") as session:
            service.process.send_signal(signal.SIGSTOP)
            threading.Timer(0.1, service.kill).start()
            with pytest.raises(TransportError, match="disconnected"):
                session.flush(100_000)


class TestForkWithSystemSession:
    def test_forked_child_has_sessions_of_its_own(self, service: ServiceProcess) -> None:
        with stretto.TracingSession(config(), backend="system") as session:
            CATEGORY.instant("parent")
            pid = os.fork()
            if pid == 0:
                try:
                    assert not CATEGORY.enabled
                    with pytest.raises(SessionError, match="parent"):
                        session.read()
                    with stretto.TracingSession(config(), backend="system") as own:
                        CATEGORY.instant("child")
                        own.stop()
                        assert names(own.read()) == ["child"]
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            session.stop()
            assert sorted(names(session.read())) == ["child", "parent"]
