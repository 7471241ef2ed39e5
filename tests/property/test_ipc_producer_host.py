"""A hostile producer: whatever it sends, the service goes on, and other producers with it."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.base.unix_socket import UnixSocket
from stretto.ipc.frames import encode_frame
from stretto.ports.producer_host import ProducerHost
from stretto.ports.producer_port import PRODUCER_PORT
from stretto.protos import ipc
from stretto.protos.config import DataSourceConfig, DataSourceDescriptor, TraceConfig
from stretto.protos.ipc import IPCFrame
from stretto.service.tracing_service import TracingService
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner

small = st.integers(0, 5)
numbers = st.one_of(small, st.integers(0, 2**32 - 1))
descriptors = st.builds(
    DataSourceDescriptor,
    name=st.sampled_from(["wanted", "other", ""]),
    id=small,
    will_notify_on_stop=st.booleans(),
    will_notify_on_start=st.booleans(),
)
moves = st.builds(
    ipc.CommitDataRequest.ChunksToMove, page=numbers, chunk=numbers, target_buffer=numbers
)
patches = st.builds(
    ipc.CommitDataRequest.ChunkToPatch,
    target_buffer=numbers,
    writer_id=numbers,
    chunk_id=numbers,
    patches=st.lists(
        st.builds(
            ipc.CommitDataRequest.ChunkToPatch.Patch, offset=numbers, data=st.binary(max_size=5)
        ),
        max_size=2,
    ),
)
arguments = {
    "InitializeConnection": st.builds(
        ipc.InitializeConnectionRequest,
        producer_name=st.text(max_size=5),
        shared_memory_page_size_hint_bytes=numbers,
        shared_memory_size_hint_bytes=numbers,
        smb_scraping_mode=small,
    ),
    "RegisterDataSource": st.builds(
        ipc.RegisterDataSourceRequest, data_source_descriptor=descriptors
    ),
    "UpdateDataSource": st.builds(ipc.UpdateDataSourceRequest, data_source_descriptor=descriptors),
    "UnregisterDataSource": st.builds(
        ipc.UnregisterDataSourceRequest, data_source_name=st.sampled_from(["wanted", "other"])
    ),
    "CommitData": st.builds(
        ipc.CommitDataRequest,
        chunks_to_move=st.lists(moves, max_size=3),
        chunks_to_patch=st.lists(patches, max_size=3),
        flush_request_id=numbers,
    ),
    "GetAsyncCommand": st.builds(ipc.GetAsyncCommandRequest),
    "RegisterTraceWriter": st.builds(
        ipc.RegisterTraceWriterRequest, trace_writer_id=numbers, target_buffer=numbers
    ),
    "UnregisterTraceWriter": st.builds(ipc.UnregisterTraceWriterRequest, trace_writer_id=numbers),
    "NotifyDataSourceStarted": st.builds(ipc.NotifyDataSourceStartedRequest, data_source_id=small),
    "NotifyDataSourceStopped": st.builds(ipc.NotifyDataSourceStoppedRequest, data_source_id=small),
    "ActivateTriggers": st.builds(
        ipc.ActivateTriggersRequest, trigger_names=st.lists(st.text(max_size=3), max_size=3)
    ),
    "Sync": st.builds(ipc.SyncRequest),
}


def request(name: str, args: bytes, drop_reply: bool = False) -> bytes:
    call = IPCFrame.InvokeMethod(
        service_id=1,
        method_id=PRODUCER_PORT.method_id(name),
        args_proto=args,
        drop_reply=drop_reply,
    )
    return encode_frame(IPCFrame(request_id=1, msg_invoke_method=call))


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    name = draw(st.sampled_from(sorted(arguments)))
    args = draw(st.one_of(arguments[name].map(lambda each: each.encode()), st.binary(max_size=20)))
    return request(name, args, draw(st.booleans()))


START = [
    request("InitializeConnection", b""),
    request("GetAsyncCommand", b""),
    request(
        "RegisterDataSource",
        ipc.RegisterDataSourceRequest(
            data_source_descriptor=DataSourceDescriptor(name="wanted")
        ).encode(),
    ),
]


class Consumer:
    """Looks on."""

    def on_connect(self) -> None: ...
    def on_disconnect(self) -> None: ...
    def on_tracing_disabled(self, error: str) -> None: ...
    def on_trace_data(self, data: bytes, has_more: bool) -> None: ...


class World:
    """A service that records `wanted`, behind a socket."""

    def __init__(self) -> None:
        self.runner = FakeTaskRunner(FakeClock())
        self.service = TracingService(self.runner, self.runner.clock)
        self.host = ProducerHost(self.runner, self.service.connect_producer)
        consumer = self.service.connect_consumer(Consumer(), uid=0)
        source = TraceConfig.DataSource(config=DataSourceConfig(name="wanted"))
        config = TraceConfig(buffers=[TraceConfig.BufferConfig(size_kb=64)], data_sources=[source])
        consumer.enable_tracing(config.encode())

    def join(self) -> UnixSocket:
        far, near = UnixSocket.pair()
        self.host.add_connection(near)
        return far

    def send(self, far: UnixSocket, data: bytes) -> list[IPCFrame]:
        if data:
            far.send(data)
        self.runner.run_until_idle()
        return self.answers(far)

    def answers(self, far: UnixSocket) -> list[IPCFrame]:
        received = far.recv_into(memoryview(buffer := bytearray(1 << 17)))
        frames, position, end = [], 0, received[0] if received else 0
        while position < end:
            length = int.from_bytes(buffer[position : position + 4], "little")
            position += 4 + length
            frames.append(IPCFrame.decode(bytes(buffer[position - length : position])))
        if received is not None and received[1] >= 0:
            os.close(received[1])
        return frames


def is_served(world: World, far: UnixSocket) -> bool:
    replies = [frame.msg_invoke_method_reply for frame in world.send(far, request("Sync", b""))]
    return any(reply is not None and reply.success for reply in replies)


@settings(max_examples=150, deadline=None)
@given(st.lists(requests(), max_size=12), st.booleans(), st.binary(max_size=30))
def test_other_producers_are_undisturbed(
    hostile: list[bytes], well_behaved_start: bool, garbage: bytes
) -> None:
    world = World()
    good, bad = world.join(), world.join()
    for frame in START:
        world.send(good, frame)
    stream: list[Any] = [*(START if well_behaved_start else ()), *hostile, garbage]
    for data in stream:
        if world.host.connection_count == 2:
            world.send(bad, data)
    bad.close()
    world.runner.advance(10_000)
    assert world.host.connection_count == 1
    assert len(world.service.producers) == 1
    assert is_served(world, good)
    good.close()
    world.runner.run_until_idle()
    assert not world.service.producers
    world.host.close()
