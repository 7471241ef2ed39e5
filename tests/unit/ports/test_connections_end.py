"""Objects of a connection are freed at its end, even if the garbage collector does not run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from stretto.base.unix_socket import UnixSocket
from stretto.ipc.connection import Connection
from stretto.ipc.frames import FrameReader, encode_frame
from stretto.ipc.host import HostConnection
from stretto.ipc.service import ServiceDescriptor
from stretto.ports.consumer_ipc_service import ConsumerIPCService
from stretto.ports.consumer_port import CONSUMER_PORT
from stretto.ports.producer_ipc_service import ProducerIPCService
from stretto.ports.producer_port import PRODUCER_PORT
from stretto.ports.remote_consumer import RemoteConsumer
from stretto.ports.remote_producer import RemoteProducer
from stretto.ports.remote_relay import RemoteRelay
from stretto.protos import ipc
from stretto.protos.config import DataSourceDescriptor
from stretto.protos.ipc import IPCFrame
from stretto.service.endpoints.consumer_endpoint import ConsumerEndpoint
from stretto.service.endpoints.producer_endpoint import ProducerEndpoint
from stretto.service.session.service_tracing_session import ServiceTracingSession
from tests.support.service_setup import Setup, make_config

KINDS = (
    Connection,
    ConsumerEndpoint,
    FrameReader,
    HostConnection,
    RemoteConsumer,
    RemoteProducer,
    RemoteRelay,
    ProducerEndpoint,
    ServiceTracingSession,
)


def count() -> dict[str, int]:
    """Count the existing objects of each class in KINDS."""
    # Not isinstance(): objects of other tests may raise errors when their class is asked for.
    found = [type(each).__name__ for each in gc.get_objects() if type(each) in KINDS]
    return {name: found.count(name) for name in sorted(found)}


def request(port: ServiceDescriptor, name: str, arguments: Any) -> bytes:
    call = IPCFrame.InvokeMethod(
        service_id=1, method_id=port.method_id(name), args_proto=arguments.encode()
    )
    return encode_frame(IPCFrame(request_id=1, msg_invoke_method=call))


@pytest.fixture
def setup() -> Iterator[Setup]:
    gc.collect()
    gc.disable()
    yield Setup()
    gc.enable()


def send_frames(
    setup: Setup, host: ProducerIPCService | ConsumerIPCService, *frames: bytes
) -> UnixSocket:
    """Connect to the host and send it frames; return the client's socket."""
    far, near = UnixSocket.pair()
    host.add_connection(near)
    for frame in frames:
        far.send(frame)
        setup.run()
    return far


def test_objects_of_a_closed_producer_connection_are_freed(setup: Setup) -> None:
    host = ProducerIPCService(setup.runner, setup.service.connect_producer)
    consumer = setup.enable(make_config("ds"))
    before = count()
    source = DataSourceDescriptor(name="ds")
    far = send_frames(
        setup,
        host,
        request(PRODUCER_PORT, "InitializeConnection", ipc.InitializeConnectionRequest()),
        request(PRODUCER_PORT, "GetAsyncCommand", ipc.GetAsyncCommandRequest()),
        request(
            PRODUCER_PORT,
            "RegisterDataSource",
            ipc.RegisterDataSourceRequest(data_source_descriptor=source),
        ),
    )
    assert setup.session_of(consumer).instances.has(*setup.service.producers.values(), "ds")
    far.close()
    setup.run()
    assert count() == before
    host.close()


def test_objects_of_a_closed_consumer_connection_are_freed(setup: Setup) -> None:
    host = ConsumerIPCService(setup.runner, setup.service.connect_consumer)
    before = count()
    far = send_frames(
        setup,
        host,
        request(
            CONSUMER_PORT, "EnableTracing", ipc.EnableTracingRequest(trace_config=make_config("ds"))
        ),
        request(CONSUMER_PORT, "ObserveEvents", ipc.ObserveEventsRequest(events_to_observe=[1])),
        request(CONSUMER_PORT, "ReadBuffers", ipc.ReadBuffersRequest()),
    )
    assert setup.service.sessions
    far.close()
    setup.run()
    assert not setup.service.sessions
    # A consumer may leave reference cycles. That does no harm: consumers are few, and their
    # sessions free the buffers.
    gc.collect()
    assert count() == before
    host.close()
