"""ProducerPort, the service's side: requests, commands and permissions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from stretto.base.errors import SessionError
from stretto.base.memory import create_sealed_memfd
from stretto.ipc.client import Client, ServiceProxy
from stretto.ipc.host import HostConnection
from stretto.ipc.service import Raw
from stretto.ports.endpoints import OutOfProcessProducer, RemoteProducerEndpoint
from stretto.ports.peer import Peer
from stretto.ports.producer_identity import ProducerIdentity
from stretto.ports.producer_port import PRODUCER_PORT
from stretto.ports.remote_producer import COMMIT_DATA_ID, SERVICE_ID, RemoteProducer
from stretto.protos import ipc
from stretto.protos.config import DataSourceConfig, DataSourceDescriptor
from stretto.protozero.wire import bytes_field
from stretto.testing.connection_pair import ConnectionPair
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.descriptors import expect_new_descriptors, open_descriptors

PEER = Peer(uid=1000, pid=4321)


class FakeCore:
    """Records commits in place of the native core."""

    def __init__(self) -> None:
        self.commits: list[bytes] = []

    def commit(self, request: bytes) -> int:
        self.commits.append(request)
        return ipc.CommitDataRequest.decode(request).flush_request_id

    def commit_frames(
        self, data: memoryview, service_id: int, method_id: int
    ) -> tuple[int, int, int]:
        assert (service_id, method_id) == (SERVICE_ID, COMMIT_DATA_ID)
        return (len(data), 2, 7) if data else (0, 0, 0)


class FakeEndpoint:
    """A service endpoint that records the calls of the RemoteProducer."""

    def __init__(self, log: list[Any]) -> None:
        self.core = FakeCore()
        self.log = log
        self.producer_provided_shm = False

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args: self.log.append((name, *args))

    def sync(self, callback: Callable[[], None]) -> None:
        self.log.append(("sync",))
        callback()


class Link:
    """A connection between the test, which acts as a producer, and a RemoteProducer."""

    def __init__(self, peer: Peer = PEER) -> None:
        self.log: list[Any] = []
        self.runner = FakeTaskRunner()
        self.pair = ConnectionPair(self.runner)
        self.endpoint = FakeEndpoint(self.log)
        self.refuse = False
        self.takes_memory = True
        self.hosted = RemoteProducer(self.connect, peer, scrape_by_default=False)
        self.client = Client(self.pair.client_outbox)
        host = HostConnection([self.hosted.service], self.pair.host_outbox, lambda: None)
        self.hosted.take_fd = host.take_fd
        self.pair.connect(self.client, host)
        bound: list[ServiceProxy | None] = []
        self.client.bind(PRODUCER_PORT, bound.append)
        self.runner.run_until_idle()
        proxy = bound[0]
        assert proxy is not None
        self.proxy = proxy

    def connect(
        self, producer: OutOfProcessProducer, identity: ProducerIdentity, *, shm_fd: int
    ) -> RemoteProducerEndpoint:
        if self.refuse:
            raise SessionError("there are 65535 producers")
        self.log.append(("connect", identity, shm_fd))
        self.endpoint.producer_provided_shm = shm_fd >= 0 and self.takes_memory
        return self.endpoint  # type: ignore[return-value]

    def call(self, name: str, request: Any) -> list[Any]:
        replies: list[Any] = []
        self.proxy.invoke(name, request, lambda reply, _more: replies.append(reply))
        self.runner.run_until_idle()
        return replies

    def initialize(self, **fields: Any) -> list[Any]:
        return self.call("InitializeConnection", ipc.InitializeConnectionRequest(**fields))

    def commands(self) -> list[Any]:
        return self.call("GetAsyncCommand", ipc.GetAsyncCommandRequest())


@pytest.fixture
def link() -> Link:
    return Link()


@pytest.fixture
def memory() -> Iterator[int]:
    fd = create_sealed_memfd(8192)
    yield fd
    os.close(fd)


DESCRIPTOR = DataSourceDescriptor(name="source")

REQUESTS = [
    (
        "RegisterDataSource",
        ipc.RegisterDataSourceRequest(data_source_descriptor=DESCRIPTOR),
        ("register_encoded_data_source", DESCRIPTOR.encode()),
    ),
    (
        "UpdateDataSource",
        ipc.UpdateDataSourceRequest(data_source_descriptor=DESCRIPTOR),
        ("update_encoded_data_source", DESCRIPTOR.encode()),
    ),
    (
        "UnregisterDataSource",
        ipc.UnregisterDataSourceRequest(data_source_name="source"),
        ("unregister_data_source", "source"),
    ),
    (
        "RegisterTraceWriter",
        ipc.RegisterTraceWriterRequest(trace_writer_id=3, target_buffer=4),
        ("register_trace_writer", 3, 4),
    ),
    (
        "UnregisterTraceWriter",
        ipc.UnregisterTraceWriterRequest(trace_writer_id=3),
        ("unregister_trace_writer", 3),
    ),
    (
        "NotifyDataSourceStarted",
        ipc.NotifyDataSourceStartedRequest(data_source_id=2**63),
        ("notify_data_source_started", 2**63),
    ),
    (
        "NotifyDataSourceStopped",
        ipc.NotifyDataSourceStoppedRequest(data_source_id=5),
        ("notify_data_source_stopped", 5),
    ),
    (
        "ActivateTriggers",
        ipc.ActivateTriggersRequest(trigger_names=["a", "b"]),
        ("activate_triggers", ["a", "b"]),
    ),
    ("Sync", ipc.SyncRequest(), ("sync",)),
]


class TestInitializeConnection:
    def test_service_gets_the_identity_of_the_producer(self, link: Link) -> None:
        (reply,) = link.initialize(
            producer_name="p",
            shared_memory_page_size_hint_bytes=4096,
            shared_memory_size_hint_bytes=1 << 22,
            sdk_version="v58",
            smb_scraping_mode=ipc.InitializeConnectionRequest.SMB_SCRAPING_ENABLED,
        )
        assert reply.direct_smb_patching_supported
        assert not reply.use_shmem_emulation
        assert link.log == [
            (
                "connect",
                ProducerIdentity(
                    "p",
                    uid=1000,
                    pid=4321,
                    sdk_version="v58",
                    smb_scraping=True,
                    page_size_hint=4096,
                    shm_size_hint=1 << 22,
                ),
                -1,
            )
        ]

    @pytest.mark.parametrize(("mode", "expected"), [(0, False), (1, True), (2, False), (3, False)])
    def test_scraping_mode_of_the_request_overrides_the_default_of_the_service(
        self, link: Link, mode: int, expected: bool
    ) -> None:
        link.initialize(smb_scraping_mode=mode)
        assert link.log[0][1].smb_scraping is expected

    def test_second_initialize_is_rejected(self, link: Link) -> None:
        link.initialize()
        assert link.initialize() == [None]
        assert len(link.log) == 1

    def test_producer_refused_by_the_service_is_rejected(self, link: Link) -> None:
        link.refuse = True
        assert link.initialize() == [None]
        assert link.call("Sync", ipc.SyncRequest()) == [None]


class TestProducerProvidedMemory:
    def offer(self, link: Link, memory: int, provided: bool = True) -> Any:
        replies: list[Any] = []
        request = ipc.InitializeConnectionRequest(
            shared_memory_page_size_hint_bytes=4096, producer_provided_shmem=provided
        )
        link.proxy.invoke(
            "InitializeConnection", request, lambda reply, _more: replies.append(reply), memory
        )
        link.runner.run_until_idle()
        return replies[0]

    def test_memory_that_the_producer_provides_is_used(self, link: Link, memory: int) -> None:
        before = open_descriptors()
        reply = self.offer(link, memory)
        assert reply.using_shmem_provided_by_producer
        assert not reply.use_shmem_emulation
        assert link.log[0][2] >= 0
        expect_new_descriptors(before, 0)

    def test_commits_are_handled_before_the_command_stream_exists(
        self, link: Link, memory: int
    ) -> None:
        self.offer(link, memory)
        assert handled(link, b"frames") == 6

    def test_memory_refused_by_the_service_is_not_used(self, link: Link, memory: int) -> None:
        link.takes_memory = False
        assert not self.offer(link, memory).using_shmem_provided_by_producer
        assert handled(link, b"frames") == 0

    def test_memory_descriptor_that_was_not_announced_is_closed(
        self, link: Link, memory: int
    ) -> None:
        before = open_descriptors()
        assert not self.offer(link, memory, provided=False).using_shmem_provided_by_producer
        assert link.log[0][2] == -1
        expect_new_descriptors(before, 0)

    def test_announced_memory_without_descriptor_is_not_used(self, link: Link) -> None:
        (reply,) = link.initialize(producer_provided_shmem=True)
        assert not reply.using_shmem_provided_by_producer


class TestRemoteProducer:
    def test_remote_producer_sends_its_chunks_within_messages(self, memory: int) -> None:
        peer = Peer(address="127.0.0.1:1")
        peer.set_identity(
            ipc.IPCFrame.SetPeerIdentity(pid=5, uid=6, machine_id_hint="a", machine_name="A")
        )
        link = Link(peer)
        (reply,) = link.initialize(producer_provided_shmem=True)
        assert reply.use_shmem_emulation
        _, identity, shm_fd = link.log[0]
        assert (identity.uid, identity.pid) == (6, 5)
        assert (identity.machine_id, identity.machine_name) == (0x8601EC8C, "A")
        assert (identity.shm_emulation, shm_fd) == (True, -1)


class TestProducerRequests:
    @pytest.mark.parametrize(("name", "request_", "logged"), REQUESTS, ids=[r[0] for r in REQUESTS])
    def test_each_producer_request_is_passed_to_the_endpoint(
        self, link: Link, name: str, request_: Any, logged: tuple[Any, ...]
    ) -> None:
        link.initialize()
        (reply,) = link.call(name, request_)
        assert reply is not None
        assert link.log[1:] == [logged]

    @pytest.mark.parametrize(("name", "request_", "logged"), REQUESTS, ids=[r[0] for r in REQUESTS])
    def test_requests_before_initialize_are_rejected(
        self, link: Link, name: str, request_: Any, logged: tuple[Any, ...]
    ) -> None:
        assert link.call(name, request_) == [None]
        assert link.log == []

    @pytest.mark.parametrize("name", ["RegisterDataSource", "UpdateDataSource"])
    def test_data_source_without_descriptor_is_rejected(self, link: Link, name: str) -> None:
        link.initialize()
        assert link.call(name, ipc.RegisterDataSourceRequest()) == [None]

    @pytest.mark.parametrize("name", ["RegisterDataSource", "UpdateDataSource"])
    def test_encoded_data_source_descriptors_reach_the_endpoint_unchanged(
        self, link: Link, name: str
    ) -> None:
        link.initialize()
        descriptor = bytes_field(1000, b"?") + b"\x0a\x81\x00a" + bytes_field(6, b"\xff")
        (reply,) = link.call(name, Raw(bytes_field(1, descriptor)))
        assert reply is not None
        assert link.log[1][1:] == (descriptor,)

    def test_every_method_has_a_handler(self, link: Link) -> None:
        assert set(link.hosted.service.handlers) == set(PRODUCER_PORT.by_name)

    def test_method_ids_equal_those_of_perfetto(self) -> None:
        ids = {name: PRODUCER_PORT.method_id(name) for name in PRODUCER_PORT.by_name}
        assert ids == ipc.PRODUCER_PORT_METHODS


def handled(link: Link, data: bytes) -> int:
    """Return how many bytes the fast path consumes."""
    consumed: list[int] = []
    link.hosted.commit_frames(memoryview(data), 1 << 20, consumed.append)
    return sum(consumed)


class TestCommitData:
    def test_commit_before_shared_memory_exists_gets_no_reply(self, link: Link) -> None:
        link.initialize()
        assert link.call("CommitData", ipc.CommitDataRequest(flush_request_id=1)) == []
        assert link.endpoint.core.commits == []
        assert handled(link, b"frames") == 0

    def test_commit_that_requests_a_reply_is_answered(self, link: Link, memory: int) -> None:
        link.initialize()
        link.hosted.on_shared_memory(memory, 8192, 4096)
        request = ipc.CommitDataRequest(flush_request_id=6)
        (reply,) = link.call("CommitData", request)
        assert reply is not None
        assert link.endpoint.core.commits == [request.encode()]
        assert link.log[-1] == ("on_commit", 6)

    def test_commits_take_the_fast_path(self, link: Link, memory: int) -> None:
        assert handled(link, b"frames") == 0
        link.initialize()
        link.hosted.on_shared_memory(memory, 8192, 4096)
        assert handled(link, b"") == 0
        assert link.log[-1][0] == "connect"
        assert handled(link, b"frames") == 6
        assert link.log[-1] == ("on_commit", 7)

    def test_commit_frames_are_consumed_even_if_the_service_raises(
        self, link: Link, memory: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link.initialize()
        link.hosted.on_shared_memory(memory, 8192, 4096)

        def fail(flush_id: int) -> None:
            raise ZeroDivisionError(f"a bug at flush {flush_id}")

        monkeypatch.setattr(link.endpoint, "on_commit", fail)
        consumed: list[int] = []
        with pytest.raises(ZeroDivisionError):
            link.hosted.commit_frames(memoryview(b"frames"), 1 << 20, consumed.append)
        assert consumed == [6]


class TestServiceCommands:
    @pytest.fixture
    def stream(self, link: Link) -> list[Any]:
        link.initialize()
        return link.commands()

    def test_commands_arrive_complete_and_in_order(self, link: Link, stream: list[Any]) -> None:
        config = DataSourceConfig(name="source", target_buffer=2)
        link.hosted.on_connect()
        link.hosted.setup_data_source(1, config)
        link.hosted.start_data_source(1, config)
        link.hosted.flush(9, [1, 2], 17)
        link.hosted.clear_incremental_state([1])
        link.hosted.stop_data_source(1)
        link.runner.run_until_idle()
        command = ipc.GetAsyncCommandResponse
        assert stream == [
            command(setup_data_source=command.SetupDataSource(new_instance_id=1, config=config)),
            command(start_data_source=command.StartDataSource(new_instance_id=1, config=config)),
            command(flush=command.Flush(data_source_ids=[1, 2], request_id=9, flags=17)),
            command(clear_incremental_state=command.ClearIncrementalState(data_source_ids=[1])),
            command(stop_data_source=command.StopDataSource(instance_id=1)),
        ]

    def test_shared_memory_is_announced_with_its_descriptor(
        self, link: Link, stream: list[Any], memory: int
    ) -> None:
        link.hosted.on_shared_memory(memory, 8192, 4096)
        link.runner.run_until_idle()
        assert stream[0].setup_tracing.shared_buffer_page_size_kb == 4
        fd = link.client.take_fd()
        assert os.path.sameopenfile(fd, memory)
        os.close(fd)

    def test_memory_provided_by_the_producer_is_confirmed_without_a_descriptor(
        self, link: Link, stream: list[Any]
    ) -> None:
        link.hosted.on_shared_memory(-1, 8192, 4096)
        link.runner.run_until_idle()
        assert stream[0].setup_tracing.shared_buffer_page_size_kb == 4
        assert link.client.take_fd() == -1

    def test_shared_memory_is_announced_when_the_command_stream_exists(self, link: Link) -> None:
        before = open_descriptors()
        link.initialize()
        memory = create_sealed_memfd(4096)
        link.hosted.on_shared_memory(memory, 4096, 4096)
        os.close(memory)
        link.hosted.stop_data_source(1)
        (command,) = link.commands()
        assert command.setup_tracing is not None
        os.close(link.client.take_fd())
        expect_new_descriptors(before, 0)

    def test_config_of_many_instances_is_encoded_once(
        self, link: Link, stream: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        encoded = []
        encode = DataSourceConfig.encode
        monkeypatch.setattr(
            DataSourceConfig, "encode", lambda self: encoded.append(self) or encode(self)
        )
        shared, other = DataSourceConfig(name="a"), DataSourceConfig(name="b")
        for instance_id, config in enumerate([shared, shared, shared, other]):
            link.hosted.setup_data_source(instance_id, config)
            link.hosted.start_data_source(instance_id, config)
        assert len(encoded) == 2
        link.runner.run_until_idle()
        names = [reply.start_data_source.config.name for reply in stream if reply.start_data_source]
        assert names == ["a", "a", "a", "b"]

    def test_no_command_is_sent_after_the_connection_ended(
        self, link: Link, stream: list[Any]
    ) -> None:
        link.hosted.disconnected()
        link.hosted.disconnected()
        link.hosted.stop_data_source(1)
        link.runner.run_until_idle()
        assert stream == []
        assert link.log[-1] == ("disconnect",)
        assert link.log.count(("disconnect",)) == 1

    def test_unsent_memory_descriptor_is_closed(self, link: Link, memory: int) -> None:
        before = open_descriptors()
        link.initialize()
        link.hosted.on_shared_memory(memory, 8192, 4096)
        link.hosted.disconnected()
        expect_new_descriptors(before, 0)

    def test_instance_ids_may_be_a_tuple(self, link: Link, stream: list[Any]) -> None:
        ids: Sequence[int] = (4, 5)
        link.hosted.clear_incremental_state(ids)
        link.runner.run_until_idle()
        assert stream[0].clear_incremental_state.data_source_ids == [4, 5]
