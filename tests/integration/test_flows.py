"""Tracing a process's messages to the tracing service does not cause endless messages.

The service runs in another process or in a thread of this process. In a thread, the messages of
both ends are traced.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import stretto
from stretto.base.clock import SystemClock
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.unix_socket import UnixListener
from stretto.client.tracing import tracing
from stretto.ports.consumer_ipc_service import ConsumerIPCService
from stretto.ports.producer_ipc_service import ProducerIPCService
from stretto.service.tracing_service import TracingService
from tests.support.recorded_events import END, Event, config, events_of
from tests.support.service_process import ServiceProcess
from tests.support.traced_greeter import flows_installed

pytestmark = pytest.mark.xdist_group("system session")  # all tests share one service


class ServiceThread:
    """A tracing service with sockets in a thread of this process."""

    def __init__(self, producers: str, consumers: str) -> None:
        self.runner = SelectorTaskRunner()
        service = TracingService(self.runner, SystemClock())
        self.hosts = [
            ProducerIPCService(self.runner, service.connect_producer),
            ConsumerIPCService(self.runner, service.connect_consumer),
        ]
        for host, address in zip(self.hosts, (producers, consumers), strict=True):
            host.listen(UnixListener(address))
        self._thread = threading.Thread(target=self.runner.run)
        self._thread.start()

    def close(self) -> None:
        """Stop the service and close its connections."""

        def end() -> None:
            for host in self.hosts:
                host.close()
            self.runner.quit()

        self.runner.post(end)
        self._thread.join(30)
        assert not self._thread.is_alive()
        self.runner.close()


@pytest.fixture(params=[ServiceProcess, ServiceThread])
def service(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[None]:
    addresses = (str(tmp_path / "producer.sock"), str(tmp_path / "consumer.sock"))
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", addresses[0])
    monkeypatch.setenv("PERFETTO_CONSUMER_SOCK_NAME", addresses[1])
    service = request.param(*addresses)
    yield
    backend = tracing.connected("system")
    if backend is not None:
        backend.close()  # type: ignore[attr-defined]
        tracing.forget("system")
    service.close()


def record(flushes: int, idle_s: float = 0) -> list[Event]:
    """Record a session without events; return the messages that its flushes sent to the service."""
    with stretto.TracingSession(config(enabled=["stretto.ipc"]), backend="system") as session:
        time.sleep(idle_s)  # sleep: the session must be idle for this time
        for _ in range(flushes):
            session.flush()
        session.stop()
        return [event for event in events_of(session.read()) if event.category == "stretto.ipc"]


@pytest.mark.usefixtures("service")
def test_tracing_messages_to_the_service_does_not_cause_endless_messages() -> None:
    with flows_installed(own_ports=True):
        record(1)  # the first recording also contains the messages that connect to the service
        few, many = record(2), record(40)
    methods = {event.args["method"] for event in many if event.kind != END}
    assert {"GetAsyncCommand", "Flush"} & methods
    assert not {"CommitData", "ReadBuffers"} & methods
    # Each flush causes a few messages; a traced message causes no further message.
    assert 0 < len(few) < 40
    assert len(many) < 40 * 8


@pytest.mark.usefixtures("service")
def test_messages_to_the_service_are_not_traced_by_default() -> None:
    with flows_installed():
        record(1)
        assert record(3) == []


@pytest.mark.usefixtures("service")
def test_idle_process_sends_a_bounded_number_of_messages() -> None:
    """If each traced commit caused another commit, there would be thousands of messages."""
    with flows_installed(own_ports=True):
        record(1)  # the first recording also contains the messages that connect to the service
        short, long = record(1), record(1, idle_s=0.4)
    assert 0 < len(short) < 60
    assert 0 < len(long) < 60
