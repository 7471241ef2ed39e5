"""The service and other consumers continue to work whatever a hostile consumer sends."""

from __future__ import annotations

import gc
import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.base.unix_socket import UnixSocket
from stretto.ipc.frames import encode_frame
from stretto.ipc.reply_streams import MAX_STREAMS
from stretto.ports.consumer_ipc_client import ConsumerIPCClient
from stretto.ports.consumer_ipc_service import ConsumerIPCService
from stretto.ports.consumer_port import CONSUMER_PORT
from stretto.protos import ipc
from stretto.protos.config import DataSourceConfig, TraceConfig
from stretto.protos.ipc import IPCFrame
from stretto.testing.mock_consumer import MockConsumer
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.examples import examples
from tests.support.service_setup import UID, Setup, event, make_config, texts

MAX_QUEUE_BYTES = 1 << 20


def rarely(strategy: st.SearchStrategy[Any], usual: object) -> st.SearchStrategy[Any]:
    """Return a strategy that draws the usual value in three of four cases."""
    return st.one_of(st.just(usual), st.just(usual), st.just(usual), strategy)


small = st.integers(0, 5)
numbers = st.one_of(small, st.integers(0, 2**32 - 1))
names = st.sampled_from(["wanted", "other", "", "\udcff", "n" * 70_000])
sources = st.builds(
    TraceConfig.DataSource,
    config=st.builds(DataSourceConfig, name=names, target_buffer=rarely(small, 0)),
    producer_name_filter=rarely(st.lists(names, max_size=2), []),
)
buffers = st.builds(
    TraceConfig.BufferConfig,
    size_kb=rarely(st.sampled_from([0, 4, 1024]), 64),
    fill_policy=small,
    transfer_on_clone=st.booleans(),
    clear_before_clone=st.booleans(),
)
triggers = st.builds(
    TraceConfig.TriggerConfig,
    trigger_mode=small,
    triggers=st.lists(st.builds(TraceConfig.TriggerConfig.Trigger, name=names), max_size=2),
    trigger_timeout_ms=numbers,
)
# The configs never set exclusive_prio or lockdown_mode: these may affect other consumers.
configs = st.builds(
    TraceConfig,
    buffers=st.lists(buffers, min_size=1, max_size=3),
    data_sources=st.lists(sources, max_size=3),
    duration_ms=rarely(numbers, 0),
    write_into_file=rarely(st.booleans(), False),
    file_write_period_ms=numbers,
    max_file_size_bytes=numbers,
    flush_period_ms=st.sampled_from([0, 100, 5000, 2**32 - 1]),
    flush_timeout_ms=numbers,
    deferred_start=st.booleans(),
    trigger_config=rarely(triggers, None),
    unique_session_name=rarely(names, ""),
    compression_type=small,
    bugreport_score=st.integers(-1, 3),
)
arguments = {
    "EnableTracing": st.builds(
        ipc.EnableTracingRequest,
        trace_config=st.one_of(st.none(), configs),
        attach_notification_only=rarely(st.booleans(), False),
    ),
    "DisableTracing": st.builds(ipc.DisableTracingRequest),
    "ReadBuffers": st.builds(ipc.ReadBuffersRequest),
    "FreeBuffers": st.builds(ipc.FreeBuffersRequest, buffer_ids=st.lists(numbers, max_size=3)),
    "Flush": st.builds(ipc.FlushRequest, timeout_ms=numbers, flags=numbers),
    "StartTracing": st.builds(ipc.StartTracingRequest),
    "ChangeTraceConfig": st.builds(ipc.ChangeTraceConfigRequest, trace_config=configs),
    "Detach": st.builds(ipc.DetachRequest, key=names),
    "Attach": st.builds(ipc.AttachRequest, key=names),
    "GetTraceStats": st.builds(ipc.GetTraceStatsRequest),
    "ObserveEvents": st.builds(
        ipc.ObserveEventsRequest, events_to_observe=st.lists(st.integers(-(2**31), 2**31 - 1))
    ),
    "QueryServiceState": st.builds(ipc.QueryServiceStateRequest, sessions_only=st.booleans()),
    "QueryCapabilities": st.builds(ipc.QueryCapabilitiesRequest),
    "SaveTraceForBugreport": st.builds(ipc.SaveTraceForBugreportRequest),
    "CloneSession": st.builds(
        ipc.CloneSessionRequest,
        session_id=st.one_of(small, st.just(2**64 - 1)),
        skip_trace_filter=st.booleans(),
        for_bugreport=st.booleans(),
        clone_trigger_name=names,
    ),
}
assert set(arguments) == set(CONSUMER_PORT.by_name)


def request(name: str, args: bytes, drop_reply: bool = False, service_id: int = 1) -> bytes:
    call = IPCFrame.InvokeMethod(
        service_id=service_id,
        method_id=CONSUMER_PORT.method_id(name),
        args_proto=args,
        drop_reply=drop_reply,
    )
    return encode_frame(IPCFrame(request_id=1, msg_invoke_method=call))


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, bool]:
    """Draw a frame, and whether a descriptor is sent with it."""
    name = draw(st.sampled_from(sorted(arguments)))
    valid = arguments[name].map(lambda each: each.encode())
    args = draw(st.one_of(valid, valid, valid, st.binary(max_size=20)))
    drop_reply, service_id = draw(st.booleans()), draw(st.sampled_from([1, 1, 1, 1, 1, 1, 0, 2]))
    return request(name, args[:130_000], drop_reply, service_id), draw(st.booleans())


START = request(
    "EnableTracing", ipc.EnableTracingRequest(trace_config=make_config("wanted")).encode()
)


class World(Setup):
    """A service with a socket, and a producer and a consumer that send only valid requests."""

    def __init__(self) -> None:
        super().__init__()
        self.host = ConsumerIPCService(self.runner, lambda consumer, uid: self.join(consumer))
        self.good_producer = self.producer("wanted")
        self.producer("\udcff", name="\udcff" * 100)
        self.good = MockConsumer(self)  # type: ignore[arg-type]
        self.enable(make_config("wanted"), self.good)
        self.writer = self.good_producer.writer("wanted")

    def join(self, consumer):  # type: ignore[no-untyped-def]
        return self.service.connect_consumer(consumer, UID)

    def connect_consumer(self, consumer, uid):  # type: ignore[no-untyped-def]
        """Connect a consumer to the port. MockConsumer calls this method."""
        return ConsumerIPCClient(self.far_end(), consumer, self.runner)

    def far_end(self) -> UnixSocket:
        far, near = UnixSocket.pair()
        self.host.add_connection(near)
        return far

    def send(self, far: UnixSocket, data: bytes, fd: int) -> None:
        """Send as much data as the service accepts. The service may close the connection."""
        while data and self.host.connection_count == 2:
            sent = far.send(data, fd)
            data, fd = data[sent:], -1
            self.run()

    def pending(self) -> int:
        return max(each.pending_bytes for each in self.host._connections)


def drain(far: UnixSocket) -> None:
    buffer = memoryview(bytearray(1 << 20))
    while (received := far.recv_into(buffer)) is not None and received[0]:
        if received[1] >= 0:
            os.close(received[1])


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(requests(), max_size=15),
    st.sampled_from([True, True, False]),
    st.booleans(),
    st.booleans(),
    st.binary(max_size=30),
)
def test_hostile_consumer_does_not_disturb_other_consumers(
    hostile: list[tuple[bytes, bool]], has_session: bool, reads: bool, waits: bool, garbage: bytes
) -> None:
    before = open_descriptors()
    world = World()
    bad = world.far_end()
    fd = os.memfd_create("hostile")
    start = [(START, False)] if has_session else []
    for data, with_fd in [*start, *hostile, (garbage, True)]:
        if world.host.connection_count == 2:
            world.send(bad, data, fd if with_fd else -1)
            assert world.pending() <= MAX_QUEUE_BYTES
        if reads:
            drain(bad)
        if waits:
            world.advance(1000)
    bad.close()
    world.advance(10_000)
    assert world.host.connection_count == 1
    assert sum(each.owner is not None for each in world.service.sessions.values()) == 1

    world.writer.write(event("one"))
    world.good.flush()
    world.run()
    assert world.good.flushes == [True]
    assert texts(world.read(world.good)) == ["one"]

    os.close(fd)
    for session in list(world.service.sessions.values()):
        session.free()
    world.good.endpoint.disconnect()
    world.host.close()
    world.run()
    if open_descriptors() - before:
        del world
        gc.collect()  # garbage collection is slow, so it runs only if descriptors are open
        expect_new_descriptors(before, 0)


def test_memory_for_replies_that_are_never_read_is_bounded() -> None:
    """After 1000 equal requests, the connection is closed or its memory is bounded."""
    world = World()
    for name in CONSUMER_PORT.by_name:
        bad = world.far_end()
        for _ in range(1000):
            if world.host.connection_count < 2:
                break
            world.send(bad, request(name, b""), -1)
            assert world.pending() <= MAX_QUEUE_BYTES
        bad.close()
        world.run()
        assert world.host.connection_count == 1, name
    assert MAX_STREAMS < 1000
    world.good.flush()
    world.run()
    assert world.good.flushes == [True]
    world.good.endpoint.disconnect()
    world.host.close()
    world.run()
