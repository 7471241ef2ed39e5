"""ProducerPort with real sockets, sealed memory, native threads and two interpreters.

TraceWriter -> chunk -> CommitData frame -> service -> trace buffer -> packets
"""

from __future__ import annotations

import gc
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from stretto import _native
from stretto.base.errors import RemoteProtocolError, TransportError
from stretto.base.unix_socket import UnixListener, UnixSocket
from stretto.ports.producer_identity import ProducerIdentity
from stretto.ports.producer_ipc_client import ProducerHints, ProducerIPCClient
from stretto.protos import trace
from stretto.protos.config import DataSourceConfig, DataSourceDescriptor
from stretto.protos.trace import TracePacket
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.plain_service import BUFFER, PlainService


class RecordingProducer:
    """A producer with one data source; it logs the calls that the service makes."""

    def __init__(self) -> None:
        self.client: ProducerIPCClient | None = None
        self.arbiter: _native.Arbiter | None = None
        self.log: list[tuple[Any, ...]] = []
        self.threads: set[int] = set()
        self.changed = threading.Condition()
        self.on_flush: Callable[[], object] = lambda: None

    def note(self, *entry: Any) -> None:
        with self.changed:
            self.log.append(entry)
            self.threads.add(threading.get_ident())
            self.changed.notify_all()

    def wait_for(self, *entry: Any) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: entry in self.log, timeout=10), self.log

    def on_connect(self) -> None:
        self.note("connect")
        assert self.client is not None
        self.client.register_data_source(DataSourceDescriptor(name="test"))

    def on_disconnect(self) -> None:
        self.note("disconnect")

    def on_tracing_setup(self, arbiter: _native.Arbiter) -> None:
        self.arbiter = arbiter
        self.note("tracing")

    def setup_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
        self.note("setup", instance_id, config.target_buffer)

    def start_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
        self.note("start", instance_id, config.target_buffer)

    def stop_data_source(self, instance_id: int) -> None:
        self.note("stop", instance_id)
        assert self.client is not None
        self.client.notify_data_source_stopped(instance_id)

    def flush(self, request_id: int, instance_ids: Sequence[int], flags: int) -> None:
        self.on_flush()
        self.note("flush", request_id, list(instance_ids), flags)
        assert self.client is not None
        self.client.notify_flush_complete(request_id)

    def clear_incremental_state(self, instance_ids: Sequence[int]) -> None:
        self.note("clear", list(instance_ids))


def packet(text: str) -> bytes:
    return TracePacket(for_testing=trace.TestEvent(str=text)).encode()


def texts(packets: list[TracePacket]) -> list[str]:
    return [event.str for each in packets if (event := each.for_testing) is not None]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[PlainService]:
    service = PlainService(str(tmp_path / "producer.sock"))
    yield service
    service.close()


def connect(service: PlainService, **hints: Any) -> RecordingProducer:
    producer = RecordingProducer()
    producer.client = ProducerIPCClient.connect(
        service.address, producer, ProducerHints("test producer", **hints)
    )
    producer.client.connect_and_wait(10_000)
    return producer


@pytest.fixture
def producer(service: PlainService) -> Iterator[RecordingProducer]:
    producer = connect(service)
    assert producer.client is not None
    yield producer
    producer.client.disconnect()


def writer(producer: RecordingProducer) -> _native.TraceWriter:
    assert producer.arbiter is not None
    return _native.TraceWriter(producer.arbiter, BUFFER, _native.STALL)


def client_of(producer: RecordingProducer) -> ProducerIPCClient:
    assert producer.client is not None
    return producer.client


def flush(service: PlainService, producer: RecordingProducer, request_id: int) -> None:
    endpoint = service.endpoints[-1]
    service.call(lambda: endpoint.producer.flush(request_id, [1], 0))
    producer.wait_for("flush", request_id, [1], 0)
    service.wait_for(lambda: endpoint.flushed >= request_id)


class TestProducerHandshake:
    def test_callbacks_during_connect_run_on_the_connecting_thread(
        self, producer: RecordingProducer
    ) -> None:
        assert producer.log == [
            ("connect",),
            ("tracing",),
            ("setup", 1, BUFFER),
            ("start", 1, BUFFER),
        ]
        assert producer.threads == {threading.get_ident()}
        assert client_of(producer).connected

    def test_service_gets_pid_and_uid_from_the_kernel(self, service: PlainService) -> None:
        producer = connect(
            service, page_size=8192, shm_size=1 << 22, sdk_version="1", smb_scraping=False
        )
        assert service.identities == [
            ProducerIdentity(
                "test producer",
                uid=os.getuid(),
                pid=os.getpid(),
                sdk_version="1",
                smb_scraping=False,
                page_size_hint=8192,
                shm_size_hint=1 << 22,
            )
        ]
        assert service.offered == [-1]
        client_of(producer).disconnect()

    def test_producer_refused_by_the_service_gets_an_error(self, service: PlainService) -> None:
        service.refuse = True
        with pytest.raises(RemoteProtocolError, match="refuses this producer"):
            connect(service)

    def test_missing_service_is_reported(self, tmp_path: Path) -> None:
        producer = RecordingProducer()
        with pytest.raises(TransportError, match="is the tracing service running"):
            ProducerIPCClient.connect(str(tmp_path / "none"), producer, ProducerHints("p"))

    def test_service_that_does_not_answer_is_reported(self, tmp_path: Path) -> None:
        listener = UnixListener(str(tmp_path / "socket"))
        producer = RecordingProducer()
        client = ProducerIPCClient.connect(listener.address, producer, ProducerHints("p"))
        with pytest.raises(TransportError, match="doesn't answer"):
            client.connect_and_wait(5)
        assert not client.connected
        listener.close()

    def test_service_that_closes_the_connection_is_reported(self) -> None:
        near, far = UnixSocket.pair()
        client = ProducerIPCClient(near, RecordingProducer(), ProducerHints("p"))
        far.close()
        with pytest.raises(TransportError, match="disconnected"):
            client.connect_and_wait(10_000)

    def test_peer_that_is_not_a_service_is_reported(self) -> None:
        near, far = socket.socketpair()
        client = ProducerIPCClient(UnixSocket(near), RecordingProducer(), ProducerHints("p"))
        far.sendall(b"HTTP/1.1 400 Bad Request\r\n")
        with pytest.raises(RemoteProtocolError, match="doesn't speak"):
            client.connect_and_wait(10_000)
        far.close()

    def test_service_of_another_user_is_refused(
        self, service: PlainService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        end = UnixSocket.connect(service.address)
        peer = end.peer_credentials()
        end.close()
        peer.uid = 4711
        monkeypatch.setattr(UnixSocket, "peer_credentials", lambda self: peer)
        with pytest.raises(TransportError, match="runs as user 4711"):
            ProducerIPCClient.connect(service.address, RecordingProducer(), ProducerHints("p"))

    def test_exception_in_a_callback_leaves_no_descriptor_open(self, service: PlainService) -> None:
        class Broken(RecordingProducer):
            def start_data_source(self, instance_id: int, config: DataSourceConfig) -> None:
                raise ZeroDivisionError

        producer = Broken()
        before = open_descriptors()
        client = ProducerIPCClient.connect(service.address, producer, ProducerHints("p"))
        producer.client = client
        with pytest.raises(ZeroDivisionError):
            client.connect_and_wait(10_000)
        service.wait_for(lambda: service.host.connection_count == 0)
        del producer, client
        expect_new_descriptors(before, 0)


class TestProducerDataPath:
    def test_packets_arrive_complete_and_in_order(
        self, service: PlainService, producer: RecordingProducer
    ) -> None:
        written = [f"packet {number} " + "x" * (number % 3000) for number in range(2000)]
        trace_writer = writer(producer)
        for text in written:
            assert trace_writer.write(packet(text))
        trace_writer.flush()
        flush(service, producer, 1)
        packets = service.read()
        assert texts(packets) == written
        assert {each.trusted_pid for each in packets} == {os.getpid()}
        assert {each.trusted_uid for each in packets} == {os.getuid()}
        stats = service.call(lambda: service.table.stats(BUFFER))
        assert stats["chunks_overwritten"] == stats["chunks_discarded"] == 0
        trace_writer.close()

    def test_packets_of_each_thread_are_on_a_sequence_of_its_own(
        self, service: PlainService, producer: RecordingProducer
    ) -> None:
        def write(name: str) -> None:
            trace_writer = writer(producer)
            for number in range(500):
                trace_writer.write(packet(f"{name}{number}"))
            trace_writer.close()

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        flush(service, producer, 1)
        by_sequence: dict[int, list[str]] = {}
        for each in service.read():
            assert each.for_testing is not None
            by_sequence.setdefault(each.trusted_packet_sequence_id, []).append(each.for_testing.str)
        assert sorted(by_sequence.values()) == [
            [f"{name}{number}" for number in range(500)] for name in "abcd"
        ]

    def test_packet_larger_than_the_shared_memory_arrives(
        self, service: PlainService, producer: RecordingProducer
    ) -> None:
        text = "y" * (3 << 20)
        trace_writer = writer(producer)
        assert trace_writer.write(packet(text))
        trace_writer.flush()
        flush(service, producer, 1)
        assert texts(service.read()) == [text]
        trace_writer.close()

    def test_data_is_committed_while_the_interpreter_is_busy(
        self, service: PlainService, producer: RecordingProducer
    ) -> None:
        # The data fills the shared memory twice; this thread holds the interpreter all the time.
        trace_writer = writer(producer)
        count = 2 * service.shm_size // 1000
        for number in range(count):
            assert trace_writer.write(packet(f"{number:990}"))
        assert trace_writer.packets_dropped == 0
        trace_writer.flush()
        flush(service, producer, 1)
        assert len(service.read()) == count
        assert producer.log.count(("start", 1, BUFFER)) == 1
        trace_writer.close()


class TestServiceCommands:
    def test_service_commands_arrive_on_the_ipc_thread(
        self, service: PlainService, producer: RecordingProducer
    ) -> None:
        remote = service.endpoints[0].producer
        service.call(lambda: remote.clear_incremental_state([1]))
        service.call(lambda: remote.stop_data_source(1))
        producer.wait_for("clear", [1])
        producer.wait_for("stop", 1)
        assert len(producer.threads) == 2
        service.wait_for(lambda: ("notify_data_source_stopped", 1) in service.endpoints[0].log)

    def test_flush_is_acknowledged_after_the_data_is_committed(
        self, service: PlainService, producer: RecordingProducer
    ) -> None:
        trace_writer = writer(producer)
        trace_writer.write(packet("before"))
        producer.on_flush = trace_writer.flush
        flush(service, producer, 5)
        assert texts(service.read()) == ["before"]
        trace_writer.close()

    def test_producer_without_shared_memory_acknowledges_a_flush(
        self, service: PlainService
    ) -> None:
        class Idle(RecordingProducer):
            def on_connect(self) -> None:
                pass

        producer = Idle()
        producer.client = ProducerIPCClient.connect(service.address, producer, ProducerHints("p"))
        producer.client.connect_and_wait(10_000)
        remote = service.endpoints[0].producer
        service.call(lambda: remote.flush(1, [], 0))
        producer.wait_for("flush", 1, [], 0)
        assert producer.arbiter is None
        assert producer.client.connected
        producer.client.disconnect()

    def test_requests_of_the_producer_reach_the_service(
        self, service: PlainService, producer: RecordingProducer
    ) -> None:
        client = client_of(producer)
        client.update_data_source(DataSourceDescriptor(name="test", id=1))
        client.notify_data_source_started(1)
        client.activate_triggers(["a", "b"])
        client.unregister_data_source("test")
        synced = threading.Event()
        client.sync(synced.set)
        assert synced.wait(10)
        assert service.call(lambda: list(service.endpoints[0].log)) == [
            ("update_encoded_data_source", DataSourceDescriptor(name="test", id=1).encode()),
            ("notify_data_source_started", 1),
            ("activate_triggers", ["a", "b"]),
            ("unregister_data_source", "test"),
        ]


class TestDisconnect:
    def test_disconnecting_producer_commits_its_data_and_closes_its_descriptors(
        self, service: PlainService
    ) -> None:
        before = open_descriptors()
        producer = connect(service)
        trace_writer = writer(producer)
        trace_writer.write(packet("last"))
        client_of(producer).disconnect()
        client_of(producer).disconnect()
        service.wait_for(lambda: service.endpoints[0].log == [("disconnect",)])
        assert texts(service.read()) == [
            "last"
        ]  # the service scraped the packet from the open chunk
        assert ("disconnect",) not in producer.log
        assert not client_of(producer).connected
        trace_writer.write(packet("too late"))
        trace_writer.close()
        expect_new_descriptors(before, 0)

    def test_commit_after_disconnect_does_not_write_to_a_reused_descriptor(
        self, service: PlainService
    ) -> None:
        producer = connect(service)
        trace_writer = writer(producer)
        trace_writer.write(packet("in a chunk that is still open"))
        number = client_of(producer)._end.fileno()
        client_of(producer).disconnect()
        # If a thread is in the arbiter at the disconnect, the broken send queue refuses its commit.
        assert client_of(producer)._queue.broken
        near, far = socket.socketpair()
        os.dup2(near.fileno(), number)  # `near` reuses the number of the closed descriptor
        trace_writer.flush()
        trace_writer.close()
        far.setblocking(False)
        with pytest.raises(BlockingIOError):
            far.recv(1)
        if number != near.fileno():
            os.close(number)
        near.close()
        far.close()

    def test_on_disconnect_is_called_once_when_the_service_disconnects(
        self, service: PlainService
    ) -> None:
        producer = connect(service)
        client = client_of(producer)
        service.call(service.host.close)
        producer.wait_for("disconnect")
        assert not client.connected
        trace_writer = writer(producer)
        trace_writer.write(packet("after the disconnect"))
        trace_writer.close()
        client.register_data_source(DataSourceDescriptor(name="other"))
        client.notify_flush_complete(1)
        synced = threading.Event()
        client.sync(synced.set)
        client.disconnect()
        assert producer.log.count(("disconnect",)) == 1

    def test_producer_may_disconnect_in_a_callback(self, service: PlainService) -> None:
        before = open_descriptors()
        producer = connect(service)
        client = client_of(producer)
        producer.on_flush = client.disconnect
        remote = service.endpoints[0].producer
        service.call(lambda: remote.flush(1, [], 0))
        service.wait_for(lambda: service.endpoints[0].log == [("disconnect",)])
        producer.wait_for("flush", 1, [], 0)
        expect_new_descriptors(before, 0)  # the socket is closed after the callback has returned
        client.disconnect()

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_client_is_closed_when_its_last_reference_is_dropped(
        self, service: PlainService
    ) -> None:
        producer = connect(service)
        producer.client = None
        del producer
        gc.collect()
        service.wait_for(lambda: service.endpoints[0].log == [("disconnect",)])

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_exception_in_a_callback_disconnects_the_producer(self, service: PlainService) -> None:
        producer = connect(service)
        producer.on_flush = lambda: 1 // 0
        remote = service.endpoints[0].producer
        service.call(lambda: remote.flush(1, [], 0))
        producer.wait_for("disconnect")
        service.wait_for(lambda: service.endpoints[0].log == [("disconnect",)])
        client_of(producer).disconnect()


class TestForkWithProducer:
    def test_service_commands_are_delivered_after_the_client_is_resumed(
        self, service: PlainService, producer: RecordingProducer
    ) -> None:
        client = client_of(producer)
        client.suspend()
        client.suspend()
        remote = service.endpoints[0].producer
        service.call(lambda: remote.clear_incremental_state([7]))
        trace_writer = writer(producer)
        trace_writer.write(packet("meanwhile"))
        trace_writer.flush()
        assert ("clear", [7]) not in producer.log
        client.resume()
        producer.wait_for("clear", [7])
        flush(service, producer, 1)
        assert texts(service.read()) == ["meanwhile"]
        trace_writer.close()

    def test_forked_child_does_not_disturb_the_parent(
        self, service: PlainService, producer: RecordingProducer
    ) -> None:
        trace_writer = writer(producer)
        trace_writer.write(packet("parent before"))
        client = client_of(producer)
        client.suspend()
        pid = fork_and_exit(lambda: in_child(client, trace_writer))
        client.resume()
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        trace_writer.write(packet("parent after"))
        trace_writer.flush()
        flush(service, producer, 1)
        assert texts(service.read()) == ["parent before", "parent after"]
        assert service.host.connection_count == 1
        trace_writer.close()

    def test_packets_of_a_killed_producer_are_kept(self, service: PlainService) -> None:
        def produce() -> None:
            trace_writer = writer(connect(service))
            for number in range(1000):
                trace_writer.write(packet(f"{number:200}"))
            os.kill(os.getpid(), 9)

        pid = fork_and_exit(produce)
        os.waitpid(pid, 0)
        service.wait_for(lambda: bool(service.endpoints) and bool(service.endpoints[0].log))
        # The last packet may be lost: it is not marked as complete.
        assert texts(service.read())[:999] == [f"{number:200}" for number in range(999)]


def in_child(client: ProducerIPCClient, trace_writer: _native.TraceWriter) -> None:
    client.abandon()
    trace_writer.write(packet("child"))
    trace_writer.flush()
    client.register_data_source(DataSourceDescriptor(name="child"))
    client.notify_flush_complete(99)
    client.disconnect()
    trace_writer.close()
    assert not client.connected


def fork_and_exit(function: Callable[[], object]) -> int:
    import warnings

    with warnings.catch_warnings():
        # CPython warns of a fork while the service's thread runs; the child doesn't use the thread.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            function()
            status = 0
        finally:
            os._exit(status)
    return pid
