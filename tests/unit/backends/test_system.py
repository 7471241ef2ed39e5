"""SystemBackend calls the callbacks of data sources in the documented order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import stretto
from stretto.backends.always_on import AlwaysOnBackend
from stretto.backends.system import SystemBackend
from stretto.base.errors import TransportError
from stretto.client.producer_connection import ProducerConnection
from stretto.ports.producer_ipc_client import ProducerIPCClient
from stretto.protos.config import DataSourceConfig
from tests.support.plain_service import BUFFER, PlainService

SECOND = 2
"""The id of the instance that a test starts; the service starts instance 1 itself."""
TIMEOUT_S = 30


@pytest.fixture
def service(tmp_path: Path) -> Iterator[PlainService]:
    service = PlainService(str(tmp_path / "sock"))
    yield service
    service.close()


class Logged:
    """A data source that blocks within `on_start` of its second instance."""

    def __init__(self) -> None:
        self.log: list[tuple[str, int]] = []
        self.blocks, self.may_go_on = threading.Event(), threading.Event()
        logged = self

        class Source(stretto.DataSource):
            name = "test.logged"

            def on_start(self) -> None:
                logged.log.append(("start begins", self.instance_id))
                if self.instance_id == SECOND:
                    logged.blocks.set()
                    assert logged.may_go_on.wait(TIMEOUT_S)
                logged.log.append(("start ends", self.instance_id))

            def on_stop(self) -> None:
                logged.log.append(("stop", self.instance_id))

        self.source = Source
        self.producer = ProducerConnection([Source])


def connect_system(address: str, producer: ProducerConnection) -> SystemBackend:
    backend = SystemBackend(address, "test")
    backend.connect_producer(producer)
    return backend


def connect_always_on(address: str, producer: ProducerConnection) -> AlwaysOnBackend:
    backend = AlwaysOnBackend(address, "test")
    backend.connect_producer(producer)
    backend.wait(TIMEOUT_S)
    assert backend.connected
    return backend


@pytest.mark.parametrize("connect", [connect_system, connect_always_on])
def test_close_waits_for_a_pending_start_before_it_stops_data_sources(
    service: PlainService,
    connect: Callable[[str, ProducerConnection], SystemBackend | AlwaysOnBackend],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged = Logged()
    suspend = ProducerIPCClient.suspend

    def suspend_and_let_go_on(client: ProducerIPCClient) -> None:
        logged.may_go_on.set()
        suspend(client)

    monkeypatch.setattr(ProducerIPCClient, "suspend", suspend_and_let_go_on)
    backend = connect(service.address, logged.producer)
    (endpoint,) = service.endpoints
    config = DataSourceConfig(name="test.logged", target_buffer=BUFFER)
    service.call(lambda: endpoint.producer.setup_data_source(SECOND, config))
    service.call(lambda: endpoint.producer.start_data_source(SECOND, config))
    assert logged.blocks.wait(TIMEOUT_S)
    backend.close()
    of_second = [what for what, instance in logged.log if instance == SECOND]
    assert of_second == ["start begins", "start ends", "stop"]
    assert logged.source.instances() == ()


def test_data_sources_are_stopped_if_the_connection_fails_after_their_start(
    service: PlainService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(client: ProducerIPCClient) -> None:
        raise TransportError("the service doesn't answer")

    logged = Logged()
    backend = SystemBackend(service.address, "test")
    monkeypatch.setattr(ProducerIPCClient, "resume", fail)
    with pytest.raises(TransportError, match="doesn't answer"):
        backend.connect_producer(logged.producer)
    assert logged.log == [("start begins", 1), ("start ends", 1), ("stop", 1)]
    assert logged.source.instances() == ()
    assert not backend.connected
