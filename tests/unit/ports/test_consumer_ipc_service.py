"""ConsumerPort, the service's side: every request of a consumer, over a socket pair."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stretto.base.peer_credentials import PeerCredentials
from stretto.base.unix_socket import UnixSocket
from stretto.ipc.frames import MAX_FRAME_BYTES
from stretto.ipc.reply_streams import MAX_QUEUED_BYTES
from stretto.ipc.service import Raw
from stretto.ports.consumer_ipc_service import NOBODY, ConsumerIPCService
from stretto.ports.consumer_port import CONSUMER_PORT
from stretto.ports.encoded_message import field_bytes
from stretto.ports.remote_consumer import MAX_PART_BYTES
from stretto.ports.service_state import decode_state
from stretto.ports.trace_slices import SliceJoiner
from stretto.protos import ipc
from stretto.protos.config import DataSourceDescriptor, TraceConfig
from stretto.protos.ipc import ObservableEvents
from stretto.protos.trace import TraceStats, TracingServiceState
from stretto.protozero.wire import bytes_field
from stretto.testing.decoded_packets import decode_packets
from tests.support.descriptors import open_descriptors
from tests.support.plain_queue import PlainQueue
from tests.support.remote_consumer import RemoteConsumer, Replies
from tests.support.remote_end import remote_end
from tests.support.service_setup import Setup, make_config, texts


class World(Setup):
    """A service behind a ConsumerIPCService."""

    def __init__(self) -> None:
        super().__init__()
        self.connected_as: list[int] = []
        self.errors: list[str] = []
        self.host = ConsumerIPCService(
            self.runner, self.connect, on_error=lambda error: self.errors.append(str(error))
        )
        self.remotes: list[RemoteConsumer] = []

    def connect(self, consumer: Any, uid: int) -> Any:
        self.connected_as.append(uid)
        return self.service.connect_consumer(consumer, uid)

    def join(self) -> RemoteConsumer:
        remote = RemoteConsumer(self.runner, self.host)
        self.remotes.append(remote)
        self.run()
        return remote

    def call(self, remote: RemoteConsumer, name: str, fd: int = -1, **fields: Any) -> Replies:
        replies = remote.call(name, fd, **fields)
        self.run()
        return replies

    def record(self, remote: RemoteConsumer, *names: str, **fields: Any) -> Replies:
        """Record packets with the texts `names`; return the pending reply to EnableTracing."""
        producer = self.producer("ds", shm_size_hint=16 << 20)
        enabled = self.call(remote, "EnableTracing", trace_config=make_config("ds", **fields))
        if names:
            self.write(producer, *names)
        return enabled

    def close(self) -> None:
        for remote in self.remotes:
            remote.close()
        self.host.close()
        self.run()


@pytest.fixture
def world() -> Iterator[World]:
    before = open_descriptors()
    world = World()
    yield world
    world.close()
    gc.collect()  # Garbage collection closes descriptors of connections and of failed tests.
    assert len(open_descriptors() - before) <= 1


@pytest.fixture
def remote(world: World) -> RemoteConsumer:
    return world.join()


def trace_of(replies: Replies) -> list[str]:
    """Return the texts in the packets of a reply to ReadBuffers."""
    assert not replies.has_more
    joiner = SliceJoiner()
    return texts(decode_packets(b"".join(joiner.add(reply) for reply in replies)))


class TestMethodsOfThePort:
    def test_method_ids_equal_those_of_perfetto(self) -> None:
        ids = {name: CONSUMER_PORT.method_id(name) for name in CONSUMER_PORT.by_name}
        assert ids == ipc.CONSUMER_PORT_METHODS

    def test_every_method_of_the_consumer_port_is_answered(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        for name in CONSUMER_PORT.by_name:
            if name not in ("EnableTracing", "ObserveEvents"):
                assert world.call(remote, name), name


class TestConsumerConnection:
    def test_consumer_has_the_uid_of_its_credentials(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        assert world.connected_as == [os.getuid()]
        assert world.host.connection_count == 1

    def test_peer_without_permission_is_disconnected(self, world: World) -> None:
        asked: list[PeerCredentials] = []

        def never(peer: PeerCredentials) -> bool:
            asked.append(peer)
            return False

        host = ConsumerIPCService(world.runner, world.connect, may_connect=never)
        remote = RemoteConsumer(world.runner, host)
        world.run()
        assert remote.disconnected
        assert remote.proxy is None
        assert [peer.pid for peer in asked] == [os.getpid()]
        assert world.connected_as == []

    @pytest.mark.parametrize("allowed", [False, True])
    def test_network_consumer_needs_permission(self, world: World, allowed: bool) -> None:
        host = ConsumerIPCService(world.runner, world.connect, allow_network=allowed)

        class Network:
            def add_connection(self, end: UnixSocket) -> None:
                host.add_connection(remote_end(end))

        remote = RemoteConsumer(world.runner, Network())
        world.run()
        assert remote.disconnected is not allowed
        assert world.connected_as == ([NOBODY] if allowed else [])
        remote.close()
        host.close()

    def test_session_ends_with_its_connection(self, world: World, remote: RemoteConsumer) -> None:
        world.record(remote)
        assert world.service.sessions
        remote.close()
        world.run()
        assert not world.service.sessions
        assert world.host.connection_count == 0

    def test_closing_the_host_disconnects_the_consumers(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        world.host.close()
        world.run()
        assert remote.disconnected


class TestConsumerSession:
    def test_enable_is_answered_when_the_session_ends(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        enabled = world.record(remote)
        assert enabled == []
        assert world.call(remote, "DisableTracing") == [ipc.DisableTracingResponse()]
        assert enabled == [ipc.EnableTracingResponse(disabled=True)]
        assert not enabled.has_more

    def test_failed_enable_is_answered_with_the_error(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        (reply,) = world.call(remote, "EnableTracing", trace_config=make_config(size_kb=0))
        assert reply.disabled
        assert "buffer" in reply.error.lower()

    def test_missing_config_counts_as_empty(self, world: World, remote: RemoteConsumer) -> None:
        world.call(remote, "EnableTracing")
        assert world.session().config == TraceConfig()

    def test_second_enable_request_rejects_the_pending_first_request(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        first = world.record(remote)
        (second,) = world.call(remote, "EnableTracing", trace_config=make_config("ds"))
        assert first == [None]
        assert "session" in second.error
        assert world.session().started

    def test_deferred_session_is_started_by_request(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        world.record(remote, deferred_start=True)
        assert not world.session().started
        world.call(remote, "StartTracing")
        assert world.session().started

    def test_free_buffers_ends_the_session(self, world: World, remote: RemoteConsumer) -> None:
        enabled = world.record(remote)
        assert world.call(remote, "FreeBuffers", buffer_ids=[1]) == [ipc.FreeBuffersResponse()]
        assert enabled == [ipc.EnableTracingResponse(disabled=True)]
        assert not world.service.sessions

    def test_flush_is_answered_when_it_is_complete(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        world.record(remote)
        assert world.call(remote, "Flush", timeout_ms=100) == [ipc.FlushResponse()]

    def test_flush_without_a_session_fails(self, world: World, remote: RemoteConsumer) -> None:
        assert world.call(remote, "Flush") == [None]

    def test_change_trace_config_reaches_the_session(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        config = make_config("ds")
        config.data_sources[0].producer_name_filter = ["somebody"]
        producer = world.producer("ds")
        world.call(remote, "EnableTracing", trace_config=config)
        assert len(world.session().instances) == 0
        config.data_sources[0].producer_name_filter = [producer.endpoint.name]
        world.call(remote, "ChangeTraceConfig", trace_config=config)
        assert len(world.session().instances) == 1

    def test_trace_is_written_into_the_descriptor(
        self, world: World, remote: RemoteConsumer, tmp_path: Path
    ) -> None:
        path = tmp_path / "trace"
        producer = world.producer("ds")
        with path.open("wb") as file:
            config = make_config("ds", write_into_file=True)
            world.call(remote, "EnableTracing", fd=file.fileno(), trace_config=config)
        world.write(producer, "one", "two")
        world.call(remote, "DisableTracing")
        assert texts(decode_packets(path.read_bytes())) == ["one", "two"]
        assert trace_of(world.call(remote, "ReadBuffers")) == []

    def test_unexpected_descriptor_is_closed(self, world: World, remote: RemoteConsumer) -> None:
        read_fd, write_fd = os.pipe()
        world.call(remote, "EnableTracing", fd=write_fd, trace_config=make_config("ds"))
        os.close(write_fd)
        # The end of the pipe is reached because no copy of the descriptor is open.
        assert os.read(read_fd, 1) == b""
        os.close(read_fd)


class TestReadBuffers:
    def test_read_buffers_returns_the_trace(self, world: World, remote: RemoteConsumer) -> None:
        world.record(remote, "one", "two")
        assert trace_of(world.call(remote, "ReadBuffers")) == ["one", "two"]
        assert trace_of(world.call(remote, "ReadBuffers")) == []

    def test_read_buffers_without_a_session_is_empty(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        assert trace_of(world.call(remote, "ReadBuffers")) == []

    def test_packets_larger_than_a_frame_are_split(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        names = ["a" * 700_000, "b", "c" * 200_000]
        world.record(remote, *names, size_kb=4096)
        assert trace_of(world.call(remote, "ReadBuffers")) == names

    def test_concurrent_requests_are_answered_in_order(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        world.record(remote, "one", "two")
        first, second = remote.call("ReadBuffers"), remote.call("ReadBuffers")
        world.run()
        assert (trace_of(first), trace_of(second)) == (["one", "two"], [])

    def test_read_ends_if_the_buffers_are_freed_during_the_read(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        world.record(remote, *(str(number) * 1000 for number in range(100)))
        read = remote.call("ReadBuffers")
        world.call(remote, "FreeBuffers")
        assert not read.has_more
        assert remote.disconnected is False


class TestSlowConsumer:
    @pytest.fixture
    def slow(self, world: World) -> Iterator[tuple[UnixSocket, World]]:
        """Return the socket of a consumer that has requested 8 MiB and doesn't read."""
        producer = world.producer("ds", shm_size_hint=16 << 20)
        far, near = UnixSocket.pair()
        queue = PlainQueue(far)
        world.host.add_connection(near)
        config = make_config("ds", size_kb=16 * 1024)
        requests = {
            "EnableTracing": ipc.EnableTracingRequest(trace_config=config),
            "ReadBuffers": ipc.ReadBuffersRequest(),
        }
        for name, request in requests.items():
            queue.invoke(1, CONSUMER_PORT.method_id(name), request.encode(), False)
            world.run()
            if name == "EnableTracing":
                world.write(producer, *("x" * 1000 for _ in range(8192)))
        yield far, world
        far.close()

    def test_send_queue_stays_short_while_the_consumer_does_not_read(
        self, slow: tuple[UnixSocket, World]
    ) -> None:
        _, world = slow
        world.advance(3600_000)
        (connection,) = world.host._connections
        assert 0 < connection.pending_bytes < MAX_QUEUED_BYTES + (128 << 10)
        assert world.host.connection_count == 1

    def test_slow_consumer_gets_the_whole_trace(self, slow: tuple[UnixSocket, World]) -> None:
        far, world = slow
        buffer, received = memoryview(bytearray(50_000)), 0
        while received < 8192 * 1000:
            got = far.recv_into(buffer)
            assert got is not None, f"stuck after {received} bytes"
            received += got[0]
            world.run()
        assert world.host.connection_count == 1

    def test_other_replies_are_sent_between_parts_of_the_trace(
        self, slow: tuple[UnixSocket, World]
    ) -> None:
        _, world = slow
        other = world.join()
        assert len(world.call(other, "QueryCapabilities")) == 1


class TestDetachedSession:
    def test_detached_session_outlives_its_connection(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        enabled = world.record(remote, "one")
        assert world.call(remote, "Detach", key="k") == [ipc.DetachResponse()]
        remote.close()
        world.run()
        assert world.session().started
        assert enabled == [None]  # The disconnection rejects the pending EnableTracing request.

        heir = world.join()
        (config,) = world.call(heir, "Attach", key="k")
        attached = ipc.AttachResponse.decode(config)
        assert attached.trace_config == make_config("ds")
        ended = world.call(heir, "EnableTracing", attach_notification_only=True)
        assert ended == []
        world.call(heir, "DisableTracing")
        assert ended == [ipc.EnableTracingResponse(disabled=True)]
        assert trace_of(world.call(heir, "ReadBuffers")) == ["one"]

    def test_second_detach_with_the_same_key_fails(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        world.record(remote)
        world.call(remote, "Detach", key="k")
        assert world.call(remote, "Detach", key="k") == [None]
        assert world.call(remote, "Attach", key="other") == [None]

    def test_session_that_ended_while_detached_reports_its_end(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        world.record(remote)
        world.call(remote, "Detach", key="k")
        world.session().disable()
        heir = world.join()
        assert len(world.call(heir, "Attach", key="k")) == 1
        (ended,) = world.call(heir, "EnableTracing", attach_notification_only=True)
        assert ended == ipc.EnableTracingResponse(disabled=True)


class TestClonedSession:
    def test_clone_is_read_by_its_consumer(self, world: World, remote: RemoteConsumer) -> None:
        world.record(remote, "one")
        cloner = world.join()
        (reply,) = world.call(cloner, "CloneSession", session_id=1)
        assert reply.success
        assert trace_of(world.call(cloner, "ReadBuffers")) == ["one"]
        assert len(world.service.sessions) == 2

    def test_clone_is_written_into_the_file_of_the_request(
        self, world: World, remote: RemoteConsumer, tmp_path: Path
    ) -> None:
        producer = world.producer("ds")
        with (tmp_path / "source").open("wb+") as source:
            config = make_config("ds", write_into_file=True)
            world.call(remote, "EnableTracing", fd=source.fileno(), trace_config=config)
        world.write(producer, "one")
        with (tmp_path / "clone").open("wb") as clone:
            (reply,) = world.call(world.join(), "CloneSession", fd=clone.fileno(), session_id=1)
        assert (reply.success, reply.was_write_into_file) == (True, True)
        assert texts(decode_packets((tmp_path / "clone").read_bytes())) == ["one"]

    def test_clone_of_unknown_session_fails(self, world: World, remote: RemoteConsumer) -> None:
        (reply,) = world.call(remote, "CloneSession", unique_session_name="nobody")
        assert not reply.success
        assert "no such session" in reply.error

    def test_second_clone_by_one_consumer_fails(self, world: World, remote: RemoteConsumer) -> None:
        world.record(remote)
        cloner = world.join()
        replies = [cloner.call("CloneSession", session_id=1) for _ in range(3)]
        world.run()
        assert [reply.success for (reply,) in replies] == [True, False, False]


class TestServiceQueries:
    def test_stats_of_the_session_of_the_consumer_are_returned(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        world.record(remote, "one")
        (reply,) = world.call(remote, "GetTraceStats")
        stats = ipc.GetTraceStatsResponse.decode(reply).trace_stats
        assert stats is not None
        assert stats.tracing_sessions == 1
        assert stats.writer_stats

    def test_stats_too_large_for_a_frame_are_sent_without_writer_stats(
        self, world: World, remote: RemoteConsumer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.record(remote)
        stats = TraceStats(tracing_sessions=7)
        stats.writer_stats = [TraceStats.WriterStats(sequence_id=n) for n in range(50_000)]
        assert len(stats.encode()) > MAX_PART_BYTES
        endpoint = world.session().owner
        monkeypatch.setattr(type(endpoint), "trace_stats", lambda _: stats.encode())
        (reply,) = world.call(remote, "GetTraceStats")
        assert ipc.GetTraceStatsResponse.decode(reply).trace_stats == TraceStats(tracing_sessions=7)

    def test_stats_without_a_session_are_rejected(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        assert world.call(remote, "GetTraceStats") == [None]

    def test_capabilities_of_the_service_are_returned(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        (reply,) = world.call(remote, "QueryCapabilities")
        assert reply.capabilities.has_query_capabilities
        assert reply.capabilities.has_clone_session

    def test_save_trace_for_bugreport_is_refused(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        (reply,) = world.call(remote, "SaveTraceForBugreport")
        assert not reply.success
        assert "CloneSession" in reply.msg

    def test_large_service_state_is_sent_in_parts(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        names = [f"{number} ".ljust(3000, "n") for number in range(100)]
        world.producer(*names)
        replies = world.call(remote, "QueryServiceState")
        assert len(replies) > 2
        assert not replies.has_more
        parts = [ipc.QueryServiceStateResponse.decode(reply).service_state for reply in replies]
        state = TracingServiceState.decode(b"".join(part.encode() for part in parts if part))
        assert [source.ds_descriptor.name for source in state.data_sources] == names  # type: ignore[union-attr]
        assert state.supports_tracing_sessions

    def test_only_known_fields_of_a_descriptor_larger_than_a_frame_are_listed(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        large = DataSourceDescriptor(name="large", id=7, no_flush=True).encode()
        large += bytes_field(100, bytes(MAX_FRAME_BYTES - 100))
        small = DataSourceDescriptor(name="small").encode() + bytes_field(100, b"opaque")
        endpoint: Any = world.producer().endpoint
        for descriptor in (large, small):
            endpoint.register_encoded_data_source(descriptor)
        replies = world.call(remote, "QueryServiceState")
        state = decode_state(b"".join(field_bytes(reply, 1) for reply in replies))
        found = [each.ds_descriptor for each in state.data_sources]
        assert found[0] == DataSourceDescriptor(name="large", id=7, no_flush=True)
        assert found[1] is not None
        assert found[1].encode() == small
        (error,) = world.errors
        assert "'large'" in error
        assert str(len(large)) in error

    def test_undecodable_requests_are_logged(self, world: World, remote: RemoteConsumer) -> None:
        assert remote.proxy is not None
        for _ in range(3):
            remote.proxy.invoke("Flush", Raw(b"\xff"))
        world.run()
        (error,) = world.errors
        assert "consumer" in error
        assert f"process {os.getpid()}" in error
        assert "Flush" in error

    def test_service_state_with_sessions_only_contains_no_producers(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        world.record(remote)
        reply = world.call(remote, "QueryServiceState", sessions_only=True)[0]
        state = ipc.QueryServiceStateResponse.decode(reply).service_state
        assert state is not None
        assert len(state.tracing_sessions) == 1
        assert not state.producers


class TestObserveEvents:
    ALL_STARTED = ObservableEvents.TYPE_ALL_DATA_SOURCES_STARTED
    INSTANCES = ObservableEvents.TYPE_DATA_SOURCES_INSTANCES

    def test_observable_events_of_the_session_are_sent(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        events = world.call(
            remote, "ObserveEvents", events_to_observe=[self.ALL_STARTED, self.INSTANCES]
        )
        assert events == []
        world.record(remote)
        observed = [each.events for each in events]
        assert any(each.all_data_sources_started for each in observed)
        assert any(each.instance_state_changes for each in observed)
        assert events.has_more

    def test_second_observe_request_ends_the_first_observation(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        old = world.call(remote, "ObserveEvents", events_to_observe=[self.ALL_STARTED])
        new = world.call(remote, "ObserveEvents", events_to_observe=[self.ALL_STARTED])
        assert (old, old.has_more) == ([ipc.ObserveEventsResponse()], False)
        world.record(remote)
        assert len(new) == 1

    def test_observing_no_events_ends_the_observation(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        old = world.call(remote, "ObserveEvents", events_to_observe=[self.ALL_STARTED])
        none = world.call(remote, "ObserveEvents")
        assert old.has_more is none.has_more is False
        world.record(remote)
        assert len(old) == len(none) == 1

    def test_many_observable_events_are_sent_in_several_replies(
        self, world: World, remote: RemoteConsumer
    ) -> None:
        names = [f"{number} ".ljust(3000, "n") for number in range(60)]
        for name in names:
            world.producer("ds", name=name)
        world.call(remote, "EnableTracing", trace_config=make_config("ds"))
        events = world.call(remote, "ObserveEvents", events_to_observe=[self.INSTANCES])
        observed = [change for each in events for change in each.events.instance_state_changes]
        assert [change.producer_name for change in observed] == names
        assert len(events) > 1
