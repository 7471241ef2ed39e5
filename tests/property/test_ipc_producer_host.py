"""The service and other producers continue to work whatever a hostile producer sends."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.base.memory import create_sealed_memfd
from stretto.base.unix_socket import UnixSocket
from stretto.ipc.frames import encode_frame
from stretto.ports.producer_ipc_service import ProducerIPCService
from stretto.ports.producer_port import PRODUCER_PORT
from stretto.protos import ipc
from stretto.protos.config import DataSourceConfig, DataSourceDescriptor, TraceConfig
from stretto.protos.ipc import IPCFrame
from stretto.protos.trace import SystemInfo
from stretto.service.tracing_service import TracingService
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.examples import examples
from tests.support.remote_end import remote_end

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
    ipc.CommitDataRequest.ChunksToMove,
    page=numbers,
    chunk=numbers,
    target_buffer=numbers,
    data=st.one_of(st.none(), st.binary(max_size=40)),
    chunk_incomplete=st.booleans(),
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
        producer_provided_shmem=st.booleans(),
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


relay_arguments = {
    "InitRelay": st.builds(
        ipc.InitRelayRequest, system_info=st.builds(SystemInfo, machine_name=st.text(max_size=5))
    ),
    "SyncClock": st.builds(
        ipc.SyncClockRequest,
        phase=small,
        clocks=st.lists(
            st.builds(ipc.SyncClockRequest.Clock, clock_id=numbers, timestamp=numbers), max_size=70
        ),
    ),
}
identities = st.builds(
    IPCFrame.SetPeerIdentity,
    pid=st.integers(-5, 5),
    uid=st.integers(-5, 5),
    machine_id_hint=st.sampled_from(["", "box"]),
    machine_name=st.text(max_size=5),
)


def relay_request(name: str, args: bytes, drop_reply: bool) -> bytes:
    call = IPCFrame.InvokeMethod(
        service_id=2,
        method_id=ipc.RELAY_PORT_METHODS[name],
        args_proto=args,
        drop_reply=drop_reply,
    )
    return encode_frame(IPCFrame(request_id=1, msg_invoke_method=call))


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
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return encode_frame(IPCFrame(set_peer_identity=draw(identities)))
    if kind == 1:
        name = draw(st.sampled_from(sorted(relay_arguments)))
        args = draw(relay_arguments[name].map(lambda each: each.encode()))
        return relay_request(name, args, draw(st.booleans()))
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
    """A consumer that ignores all calls."""

    def on_connect(self) -> None: ...
    def on_disconnect(self) -> None: ...
    def on_tracing_disabled(self, error: str) -> None: ...
    def on_trace_data(self, data: bytes, has_more: bool) -> None: ...


def shared_memory(kind: int) -> int:
    """Return a descriptor: -1, usable memory, memory that can shrink, or another kind of file."""
    if kind == 0:
        return -1
    if kind == 1:
        return create_sealed_memfd(64 * 4096)
    if kind == 2:
        fd = os.memfd_create("open")
        os.ftruncate(fd, 64 * 4096)
        return fd
    return os.open("/dev/null", os.O_RDONLY)


class World:
    """A service with a socket, and a session that records the data source named `wanted`."""

    def __init__(self) -> None:
        self.runner = FakeTaskRunner(FakeClock())
        self.service = TracingService(self.runner, self.runner.clock)
        self.host = ProducerIPCService(
            self.runner,
            self.service.connect_producer,
            connect_relay=self.service.connect_relay,
        )
        consumer = self.service.connect_consumer(Consumer(), uid=0)
        source = TraceConfig.DataSource(config=DataSourceConfig(name="wanted"))
        config = TraceConfig(buffers=[TraceConfig.BufferConfig(size_kb=64)], data_sources=[source])
        consumer.enable_tracing(config.encode())

    def join(self, *, remote: bool = False) -> UnixSocket:
        far, near = UnixSocket.pair()
        self.host.add_connection(remote_end(near) if remote else near, relays=True)
        return far

    def send(self, far: UnixSocket, data: bytes, fd: int = -1) -> list[IPCFrame]:
        if data:
            far.send(data, fd)
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


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.tuples(requests(), st.integers(0, 12)), max_size=12),
    st.booleans(),
    st.booleans(),
    st.binary(max_size=30),
)
def test_hostile_producer_does_not_disturb_other_producers(
    hostile: list[tuple[bytes, int]], well_behaved_start: bool, remote: bool, garbage: bytes
) -> None:
    fds_before = open_descriptors()
    world = World()
    good, bad = world.join(), world.join(remote=remote)
    for frame in START:
        world.send(good, frame)
    start = [(frame, 0) for frame in START] if well_behaved_start else []
    for data, memory in [*start, *hostile, (garbage, 0)]:
        fd = shared_memory(memory if memory < 4 else 0)
        if world.host.connection_count == 2:
            world.send(bad, data, fd)
        if fd >= 0:
            os.close(fd)
    bad.close()
    world.runner.advance(10_000)
    assert world.host.connection_count == 1
    assert len(world.service.producers) == 1
    assert not world.service.context.relays
    assert is_served(world, good)
    good.close()
    world.runner.run_until_idle()
    assert not world.service.producers
    world.host.close()
    del world
    expect_new_descriptors(fds_before, 0)
