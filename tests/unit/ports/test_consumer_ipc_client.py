"""ConsumerIPCClient: a consumer gets the same replies as without a socket."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stretto.base import unix_socket
from stretto.base.errors import TransportError
from stretto.base.peer_credentials import PeerCredentials
from stretto.base.unix_socket import UnixListener, UnixSocket
from stretto.ipc.connection import Connection
from stretto.ipc.frames import encode_frame
from stretto.ipc.host import Deferred, HostConnection, HostedService
from stretto.ipc.service import Method, Raw, ServiceDescriptor
from stretto.ports.consumer_ipc_client import ConsumerIPCClient
from stretto.ports.consumer_ipc_service import ConsumerIPCService
from stretto.ports.consumer_port import CONSUMER_PORT
from stretto.protos import ipc
from stretto.protos.config import TraceConfig
from stretto.protos.ipc import IPCFrame, ObservableEvents
from stretto.protos.trace import TraceStats, TracingServiceState
from stretto.protozero.wire import bytes_field
from stretto.testing.fake_task_runner import FakeTaskRunner
from stretto.testing.mock_consumer import MockConsumer
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.plain_queue import PlainQueue
from tests.support.service_setup import Setup, make_config, texts


class World(Setup):
    """A service whose consumers are behind sockets."""

    def __init__(self) -> None:
        super().__init__()
        self.host = ConsumerIPCService(self.runner, self.service.connect_consumer)
        self.consumers: list[MockConsumer] = []

    def connect_consumer(self, consumer: Any, uid: int) -> ConsumerIPCClient:
        """Connect a consumer over a socket pair instead of directly to the service."""
        far, near = UnixSocket.pair()
        self.host.add_connection(near)
        return ConsumerIPCClient(far, consumer, self.runner)

    def consumer(self) -> MockConsumer:
        self.consumers.append(MockConsumer(self))  # type: ignore[arg-type]
        return self.consumers[-1]

    def record(self, consumer: MockConsumer, *names: str, **fields: Any) -> None:
        """Record packets with the texts `names`."""
        producer = self.producer("ds", shm_size_hint=16 << 20)
        self.enable(make_config("ds", **fields), consumer)
        self.write(producer, *names)

    def close(self) -> None:
        for consumer in self.consumers:
            consumer.endpoint.disconnect()
        self.host.close()
        self.run()


@pytest.fixture
def world() -> Iterator[World]:
    before = open_descriptors()
    world = World()
    yield world
    world.close()
    gc.collect()
    expect_new_descriptors(before, 0)


@pytest.fixture
def consumer(world: World) -> MockConsumer:
    return world.consumer()


def client_of(consumer: MockConsumer) -> ConsumerIPCClient:
    assert isinstance(consumer.endpoint, ConsumerIPCClient)
    return consumer.endpoint


class TestConsumerSession:
    def test_session_is_enabled_stopped_and_read(
        self, world: World, consumer: MockConsumer
    ) -> None:
        world.record(consumer, "one", "two")
        assert consumer.connected
        consumer.flush()
        world.run()
        assert consumer.flushes == [True]
        assert consumer.disabled == []
        consumer.endpoint.disable_tracing()
        world.run()
        assert consumer.disabled == [""]
        consumer.endpoint.read_buffers()
        world.run()
        assert texts(consumer.packets()) == ["one", "two"]
        assert [more for _, more in consumer.reads][-1] is False
        consumer.endpoint.free_buffers()
        world.run()
        assert not world.service.sessions

    def test_packets_larger_than_a_frame_are_joined(
        self, world: World, consumer: MockConsumer
    ) -> None:
        names = ["a" * 300_000, "b", "c" * 200_000]
        world.record(consumer, *names, size_kb=2048)
        assert texts(world.read(consumer)) == names

    def test_refused_session_ends_with_the_error(
        self, world: World, consumer: MockConsumer
    ) -> None:
        world.enable(make_config(size_kb=0), consumer)
        (error,) = consumer.disabled
        assert "buffer" in error.lower()

    def test_config_too_large_for_a_frame_is_refused(
        self, world: World, consumer: MockConsumer
    ) -> None:
        world.enable(make_config("n" * 140_000), consumer)
        (error,) = consumer.disabled
        assert "131020" in error

    def test_deferred_session_gets_new_producer_filters_before_its_start(
        self, world: World, consumer: MockConsumer
    ) -> None:
        producer = world.producer("ds")
        config = make_config("ds", deferred_start=True)
        config.data_sources[0].producer_name_filter = ["somebody"]
        world.enable(config, consumer)
        assert not world.session().started
        config.data_sources[0].producer_name_filter = [producer.endpoint.name]
        consumer.endpoint.change_trace_config(config.encode())
        consumer.endpoint.start_tracing()
        world.run()
        assert world.session().started
        assert len(world.session().instances) == 1

    def test_trace_is_written_into_a_descriptor(
        self, world: World, consumer: MockConsumer, tmp_path: Path
    ) -> None:
        path = tmp_path / "trace"
        producer = world.producer("ds")
        # The client duplicates the descriptor, so the file can be closed.
        with path.open("wb") as file:
            consumer.enable(make_config("ds", write_into_file=True), file.fileno())
        world.run()
        world.write(producer, "one")
        consumer.endpoint.disable_tracing()
        world.run()
        assert b"one" in path.read_bytes()

    def test_flush_without_a_session_fails(self, world: World, consumer: MockConsumer) -> None:
        consumer.flush()
        world.run()
        assert consumer.flushes == [False]

    def test_detached_session_can_be_attached(self, world: World, consumer: MockConsumer) -> None:
        world.record(consumer, "one")
        detached: list[bool] = []
        consumer.endpoint.detach("key", detached.append)
        world.run()
        consumer.endpoint.disconnect()
        world.run()
        heir, configs = world.consumer(), list[bytes | None]()
        heir.endpoint.attach("wrong", configs.append)
        heir.endpoint.attach("key", configs.append)
        world.run()
        assert detached == [True]
        assert configs == [None, make_config("ds").encode()]
        world.session().disable()
        world.run()
        assert heir.disabled == [""]
        assert texts(world.read(heir)) == ["one"]

    def test_session_can_be_cloned(self, world: World, consumer: MockConsumer) -> None:
        world.record(consumer, "one")
        cloner = world.consumer()
        cloner.clone(session_id=1)
        cloner.clone(session_id=99)
        world.run()
        good, bad = sorted(cloner.clones, key=lambda clone: not clone.success)
        assert good.success
        assert bad.error
        assert texts(world.read(cloner)) == ["one"]


class TestServiceQueries:
    def test_trace_stats_are_returned(self, world: World, consumer: MockConsumer) -> None:
        stats: list[bytes | None] = []
        consumer.endpoint.get_trace_stats(stats.append)
        world.run()
        world.record(consumer)
        consumer.endpoint.get_trace_stats(stats.append)
        world.run()
        assert stats[0] is None
        assert TraceStats.decode(stats[1] or b"").tracing_sessions == 1

    def test_service_state_in_many_parts_is_joined(
        self, world: World, consumer: MockConsumer
    ) -> None:
        names = [f"{number} ".ljust(3000, "n") for number in range(100)]
        world.producer(*names)
        states: list[TracingServiceState] = []
        consumer.endpoint.query_service_state(states.append)
        consumer.endpoint.query_service_state(states.append, sessions_only=True)
        world.run()
        found = [each.ds_descriptor for each in states[0].data_sources]
        assert [descriptor and descriptor.name for descriptor in found] == names
        assert states[1].data_sources == []

    def test_capabilities_are_returned(self, world: World, consumer: MockConsumer) -> None:
        capabilities: list[ipc.TracingServiceCapabilities] = []
        consumer.endpoint.query_capabilities(capabilities.append)
        world.run()
        assert capabilities[0].has_clone_session

    def test_observable_events_are_delivered(self, world: World, consumer: MockConsumer) -> None:
        consumer.observe(
            ObservableEvents.TYPE_ALL_DATA_SOURCES_STARTED
            | ObservableEvents.TYPE_DATA_SOURCES_INSTANCES
        )
        world.record(consumer)
        assert any(event.all_data_sources_started for event in consumer.events)
        assert any(event.instance_state_changes for event in consumer.events)
        consumer.observe(0)
        world.run()
        seen = len(consumer.events)
        consumer.endpoint.disable_tracing()
        world.run()
        assert len(consumer.events) == seen


class TestEndOfTheConnection:
    def test_disconnect_ends_the_session_without_an_error(
        self, world: World, consumer: MockConsumer
    ) -> None:
        world.record(consumer)
        assert client_of(consumer).connected
        consumer.flush()
        consumer.endpoint.disconnect()
        consumer.endpoint.disconnect()
        world.run()
        assert not consumer.connected
        assert not client_of(consumer).connected
        assert client_of(consumer).error == ""
        assert consumer.flushes == []  # The flush isn't answered after the disconnection.
        assert not world.service.sessions

    def test_disconnection_by_the_service_is_reported(
        self, world: World, consumer: MockConsumer
    ) -> None:
        world.record(consumer)
        consumer.flush()
        world.host.close()
        world.run()
        assert not consumer.connected
        assert "disconnected" in client_of(consumer).error
        assert consumer.flushes == []
        consumer.flush()  # A disconnected client ignores calls.
        world.run()

    def test_refused_connection_is_reported(self, world: World) -> None:
        world.host = ConsumerIPCService(
            world.runner, world.service.connect_consumer, may_connect=lambda _: False
        )
        consumer = world.consumer()
        consumer.enable(TraceConfig())
        world.run()
        assert "group" in client_of(consumer).error

    def test_abandoning_a_client_in_a_forked_child_closes_only_descriptors_of_the_child(
        self, tmp_path: Path
    ) -> None:
        childs_runner = FakeTaskRunner()
        far, near = UnixSocket.pair()
        parents_copy = os.dup(far.fileno())
        service = type("Service", (), {})()
        service.connect_consumer = lambda consumer, uid: ConsumerIPCClient(
            far, consumer, childs_runner
        )
        consumer = MockConsumer(service)
        with (tmp_path / "trace").open("wb") as file:
            # The request and its descriptor are kept until the service is bound.
            consumer.enable(TraceConfig(), file.fileno())
        before = open_descriptors()
        client_of(consumer).abandon()
        assert len(before - open_descriptors()) == 2
        # The child doesn't change the selector, which it shares with the parent.
        assert len(childs_runner.watched) == 1
        # The second read returns None, so the connection is still open.
        near.recv_into(memoryview(bytearray(100)))
        assert near.recv_into(memoryview(bytearray(100))) is None
        os.close(parents_copy)
        near.close()

    def test_service_that_does_not_answer_is_reported(self) -> None:
        runner = FakeTaskRunner()
        far, near = UnixSocket.pair()
        service = type("Service", (), {})()
        service.connect_consumer = lambda consumer, uid: ConsumerIPCClient(
            far, consumer, runner, 50
        )
        consumer = MockConsumer(service)
        runner.advance(49)
        assert client_of(consumer).error == ""
        runner.advance(1)
        assert "doesn't answer" in client_of(consumer).error
        near.close()


class OtherService:
    """A service of another version, with its own methods."""

    def __init__(self, descriptor: ServiceDescriptor, handlers: dict[str, Any]) -> None:
        self.runner = FakeTaskRunner()
        self.descriptor = descriptor
        self.handlers = handlers
        self.consumer = MockConsumer(self)  # type: ignore[arg-type]
        self.client = client_of(self.consumer)

    def connect_consumer(self, consumer: Any, uid: int) -> ConsumerIPCClient:
        far, near = UnixSocket.pair()
        self.end = Connection(near, self.runner, PlainQueue(near), lambda: None)
        hosted = HostedService(self.descriptor, self.handlers)
        self.end.start(HostConnection([hosted], self.end, self.end.close_soon))
        return ConsumerIPCClient(far, consumer, self.runner)

    def close(self) -> None:
        self.client.disconnect()
        self.runner.run_until_idle()


@pytest.fixture
def other() -> Iterator[Callable[..., OtherService]]:
    services: list[OtherService] = []

    def make(names: list[str], name: str = "ConsumerPort", **handlers: Any) -> OtherService:
        methods = [Method(each, Raw, Raw) for each in names]
        services.append(OtherService(ServiceDescriptor(name, methods), handlers))
        services[-1].runner.run_until_idle()
        return services[-1]

    yield make
    for service in services:
        service.close()


class TestServiceOfAnotherVersion:
    def test_requests_of_methods_unknown_to_the_service_fail(self, other: Any) -> None:
        service = other(["EnableTracing", "ReadBuffers"])
        consumer, answers = service.consumer, list[Any]()
        assert consumer.connected
        consumer.observe(2)
        consumer.clone(session_id=1)
        consumer.flush()
        service.client.query_capabilities(answers.append)
        service.client.query_service_state(answers.append)
        service.client.get_trace_stats(answers.append)
        service.client.attach("key", answers.append)
        service.client.detach("key", answers.append)
        service.client.start_tracing()
        # Callbacks are called by tasks that have not run yet.
        assert (consumer.events, consumer.flushes, answers) == ([], [], [])
        service.runner.run_until_idle()
        assert consumer.events == [ObservableEvents()]
        assert consumer.flushes == [False]
        assert "old" in consumer.clones[0].error
        none = [ipc.TracingServiceCapabilities(), TracingServiceState(), None, None, False]
        assert answers == none
        assert service.client.connected

    def test_methods_are_bound_by_name_and_unknown_fields_are_ignored(self, other: Any) -> None:
        def read(_request: Raw, deferred: Deferred) -> None:
            slice_ = bytes_field(1, b"packet") + b"\x10\x01" + bytes_field(77, b"?")
            deferred.resolve(Raw(bytes_field(99, b"?") + bytes_field(2, slice_)), has_more=True)
            deferred.resolve(Raw())

        def enable(_request: Raw, deferred: Deferred) -> None:
            deferred.resolve(Raw(b"\x08\x01" + bytes_field(50, b"?")))

        names = ["Invented", *reversed(CONSUMER_PORT.by_name)]
        service = other(names, ReadBuffers=read, EnableTracing=enable)
        service.consumer.enable(TraceConfig())
        service.client.read_buffers()
        service.runner.run_until_idle()
        assert service.consumer.disabled == [""]
        assert service.consumer.data == b"\x0a\x06packet"
        assert service.consumer.reads == [(8, True), (0, False)]

    def test_unknown_frames_are_ignored(self, other: Any) -> None:
        service = other(list(CONSUMER_PORT.by_name))
        for frame in (b"\x04\x00\x00\x00\xff\xff\xff\xff", b"\0\0\0\0"):
            service.end.push(frame)
        error = IPCFrame.RequestError(error="what?")
        service.end.push(encode_frame(IPCFrame(request_id=99, msg_request_error=error)))
        service.runner.run_until_idle()
        assert service.client.connected

    def test_undecodable_reply_ends_the_connection(self, other: Any) -> None:
        service = other(
            ["ReadBuffers"], ReadBuffers=lambda _, deferred: deferred.resolve(Raw(b"\x12\x7f"))
        )
        service.client.read_buffers()
        service.runner.run_until_idle()
        assert "can't be read" in service.client.error
        assert not service.consumer.connected

    def test_address_of_a_producer_socket_is_refused(self, other: Any) -> None:
        service = other(["CommitData"], name="ProducerPort")
        assert "give the consumer socket's address" in service.client.error
        assert not service.consumer.connected


class TestConnectToTheService:
    def test_connecting_without_a_service_is_an_error(
        self, world: World, consumer: MockConsumer, tmp_path: Path
    ) -> None:
        with pytest.raises(TransportError, match=r"stretto traced.*PERFETTO_CONSUMER_SOCK_NAME"):
            ConsumerIPCClient.connect(str(tmp_path / "none"), consumer, world.runner)

    def test_service_of_another_user_is_refused(
        self, world: World, consumer: MockConsumer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listener = UnixListener(str(tmp_path / "socket"))
        somebody = PeerCredentials(pid=1, uid=os.geteuid() + 1, gid=1)
        monkeypatch.setattr(unix_socket.UnixSocket, "peer_credentials", lambda _: somebody)
        with pytest.raises(TransportError, match="runs as user"):
            ConsumerIPCClient.connect(listener.address, consumer, world.runner)
        listener.close()

    def test_client_connects_to_the_path_of_a_socket(self, world: World, tmp_path: Path) -> None:
        world.host.listen(UnixListener(str(tmp_path / "socket")))
        capabilities: list[Any] = []
        client = ConsumerIPCClient.connect(
            str(tmp_path / "socket"), MockConsumer(world.service), world.runner
        )
        client.query_capabilities(capabilities.append)
        world.run()
        assert capabilities[0].has_query_capabilities
        client.disconnect()
        world.run()
