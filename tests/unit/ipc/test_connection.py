"""Connections and listeners over real sockets, with a fake clock."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from stretto.base.errors import TransportError
from stretto.base.unix_socket import UnixListener, UnixSocket
from stretto.ipc.client import Client, ServiceProxy
from stretto.ipc.connection import BYTES_OF_A_FRAME, BYTES_PER_TURN, Connection
from stretto.ipc.frames import encode_frame
from stretto.ipc.host import HostConnection
from stretto.ipc.listener import RETRY_MS, Listener
from stretto.ipc.service import Raw
from stretto.ipc.turns import Turns
from stretto.protos.ipc import IPCFrame
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.greeter import GREETER, Greeter
from tests.support.plain_queue import PlainQueue

Consume = Callable[[int], object]
FastPath = Callable[[memoryview, int, Consume], object]


class HostEnd:
    """A host on one end of a socket pair; the test uses the other end, `far`."""

    def __init__(
        self,
        runner: FakeTaskRunner,
        limit: int = 1 << 20,
        fast_path: FastPath | None = None,
        *,
        turns: Turns | None = None,
        urgent: bool = False,
    ) -> None:
        self.far, near = UnixSocket.pair()
        self.near_fd = near.fileno()
        self.closed = 0
        self.cut_off: list[str] = []
        self.greeter = Greeter()
        self.connection = Connection(
            near,
            runner,
            PlainQueue(near, limit),
            self._on_closed,
            self.cut_off.append,
            turns=turns,
            urgent=urgent,
        )
        machine = HostConnection([self.greeter.hosted], self.connection, self.connection.give_up)
        self.greeter.take_fd = machine.take_fd
        self.connection.start(machine, fast_path)

    def _on_closed(self) -> None:
        self.closed += 1


@pytest.fixture
def runner() -> FakeTaskRunner:
    return FakeTaskRunner()


def hello(data: bytes = b"you", request_id: int = 1) -> bytes:
    call = IPCFrame.InvokeMethod(
        service_id=1, method_id=GREETER.method_id("SayHello"), args_proto=data
    )
    return encode_frame(IPCFrame(request_id=request_id, msg_invoke_method=call))


def drain(far: UnixSocket) -> bytes:
    """Receive all data that is available now."""
    data, buffer = b"", memoryview(bytearray(1 << 20))
    while (received := far.recv_into(buffer)) is not None and received[0]:
        data += buffer[: received[0]]
    return data


class TestCallsOverASocket:
    def test_client_binds_invokes_and_sends_a_descriptor_over_a_socket(
        self, runner: FakeTaskRunner
    ) -> None:
        host = HostEnd(runner)
        client_connection = Connection(host.far, runner, PlainQueue(host.far), lambda: None)
        client = Client(client_connection)
        client_connection.start(client)
        bound: list[ServiceProxy | None] = []
        client.bind(GREETER, bound.append)
        runner.run_until_idle()
        (proxy,) = bound
        assert proxy is not None
        replies: list[bytes] = []
        read_fd, write_fd = os.pipe()
        os.write(write_fd, b"through a pipe")
        proxy.invoke("ReadFd", Raw(), lambda reply, _more: replies.append(reply.data), read_fd)
        proxy.invoke("SayHello", Raw(b"you"), lambda reply, _more: replies.append(reply.data))
        runner.run_until_idle()
        assert replies == [b"through a pipe", b"hello you"]
        client_connection.close()
        runner.run_until_idle()
        assert host.closed == 1
        os.close(read_fd)
        os.close(write_fd)

    def test_frame_sent_byte_by_byte_is_handled(self, runner: FakeTaskRunner) -> None:
        host = HostEnd(runner)
        for byte in hello():
            host.far.send(bytes([byte]))
            runner.run_until_idle()
        assert host.greeter.calls == [b"you"]
        host.connection.close()
        host.far.close()

    def test_queued_replies_are_sent_when_the_client_reads(self, runner: FakeTaskRunner) -> None:
        host = HostEnd(runner, limit=8 << 20)
        for number in range(1, 9):
            host.far.send(hello(bytes(100_000), number))
            runner.run_until_idle()
        assert host.connection.pending_bytes > 0
        received = b""
        while len(received) < 8 * 100_000:
            received += drain(host.far)
            runner.run_until_idle()
        assert host.connection.pending_bytes == 0
        host.connection.close()
        host.far.close()


class TestEndOfTheConnection:
    def test_disconnection_of_the_client_closes_the_connection(
        self, runner: FakeTaskRunner
    ) -> None:
        host = HostEnd(runner)
        host.far.send(hello())
        host.far.close()
        runner.run_until_idle()
        assert host.greeter.calls == [b"you"]
        assert host.closed == 1
        assert not host.cut_off
        assert host.connection.closed
        assert not runner.watched
        host.connection.close()
        assert host.closed == 1
        assert not host.connection.push(b"x")
        assert host.connection.invoke(1, 1, b"", True) == 0

    def test_disconnection_within_a_frame_closes_the_connection(
        self, runner: FakeTaskRunner
    ) -> None:
        host = HostEnd(runner)
        host.far.send(hello()[:-1])
        host.far.close()
        runner.run_until_idle()
        assert host.greeter.calls == []
        assert host.closed == 1

    def test_huge_frame_length_closes_the_connection(self, runner: FakeTaskRunner) -> None:
        host = HostEnd(runner)
        host.far.send(b"\xff\xff\xff\x7f" + hello())
        runner.run_until_idle()
        assert host.closed == 1
        assert len(host.cut_off) == 1
        assert "announced a frame of 2147483647 bytes" in host.cut_off[0]
        assert drain(host.far) == b""
        host.far.close()

    def test_client_that_does_not_read_is_disconnected(self, runner: FakeTaskRunner) -> None:
        host = HostEnd(runner, limit=300_000)
        for number in range(1, 20):
            if not host.closed:
                host.far.send(hello(bytes(100_000), number))
                runner.run_until_idle()
        assert host.closed == 1
        assert host.cut_off == ["it doesn't read what it is sent"]
        host.far.close()

    def test_handler_may_close_the_connection(self, runner: FakeTaskRunner) -> None:
        host = HostEnd(runner)

        def close(request: Raw, deferred: object) -> None:
            host.connection.close()

        host.greeter.hosted.handlers["SayHello"] = close  # type: ignore[index]
        host.far.send(hello() + hello())
        runner.run_until_idle()
        assert host.closed == 1
        host.far.close()

    def test_fast_path_callback_may_close_the_connection(self, runner: FakeTaskRunner) -> None:
        def close(_data: memoryview, _most: int, _consume: Consume) -> None:
            host.connection.close()

        host = HostEnd(runner, fast_path=close)
        host.far.send(hello())
        runner.run_until_idle()
        assert host.closed == 1
        assert host.greeter.calls == []
        host.far.close()


class TestFastPathForCommonFrames:
    def test_fast_path_and_handlers_process_frames_in_order(self, runner: FakeTaskRunner) -> None:
        fast = encode_frame(IPCFrame(request_id=99))
        seen: list[bytes] = []

        def take_fast(data: memoryview, _most: int, consume: Consume) -> None:
            taken = 0
            while bytes(data[taken : taken + len(fast)]) == fast:
                taken += len(fast)
                consume(len(fast))
                seen.append(b"fast")

        host = HostEnd(runner, fast_path=take_fast)
        host.greeter.calls = seen
        host.far.send(fast + fast + hello(b"1") + fast + hello(b"2") + fast)
        runner.run_until_idle()
        assert seen == [b"fast", b"fast", b"1", b"fast", b"2", b"fast"]
        host.connection.close()
        host.far.close()

    def test_frames_consumed_before_an_exception_are_not_handled_again(
        self, runner: FakeTaskRunner
    ) -> None:
        def fail(_data: memoryview, _most: int, consume: Consume) -> None:
            consume(len(hello(b"a")))
            raise ZeroDivisionError("a bug")

        host = HostEnd(runner, fast_path=fail)
        host.far.send(hello(b"a"))
        with pytest.raises(ZeroDivisionError):
            runner.run_until_idle()
        assert host.greeter.calls == []
        host.connection.close()
        host.far.close()


class TestTurnsOfBusyConnections:
    """A connection that has received many frames takes turns with other connections."""

    FRAMES = 3 * BYTES_PER_TURN // BYTES_OF_A_FRAME
    """More frames than one turn handles, and fewer than the socket's buffer holds."""

    def busy_hosts(self, runner: FakeTaskRunner, order: list[bytes]) -> list[HostEnd]:
        """Return three connections with many received frames; handlers log calls in `order`."""
        turns = Turns(runner)
        hosts = [HostEnd(runner, turns=turns) for _ in range(3)]
        for number, host in enumerate(hosts):
            host.greeter.calls = order
            host.far.send(hello(b"busy %d" % number) * self.FRAMES)
        return hosts

    def test_other_connection_is_served_after_one_turn_of_each_busy_connection(
        self, runner: FakeTaskRunner
    ) -> None:
        order: list[bytes] = []
        hosts = self.busy_hosts(runner, order)
        bystander = HostEnd(runner)
        bystander.greeter.calls = order
        bystander.far.send(hello(b"bystander"))
        runner.run_until_idle()
        frames_per_turn = BYTES_PER_TURN // BYTES_OF_A_FRAME
        # After each descriptor callback, one waiting connection also gets a turn.
        assert order.index(b"bystander") <= 2 * len(hosts) * frames_per_turn
        assert len(order) == len(hosts) * self.FRAMES + 1
        close_all([*hosts, bystander])

    def test_urgent_connection_is_served_after_one_turn(self, runner: FakeTaskRunner) -> None:
        order: list[bytes] = []
        hosts = self.busy_hosts(runner, order)
        bystander = HostEnd(runner, urgent=True)
        bystander.greeter.calls = order
        answered: list[int] = []

        def feed() -> None:
            bystander.far.send(hello(b"bystander"))

        def answer(request: Raw, deferred: object) -> None:
            answered.append(len(order))
            if len(answered) < 3:
                feed()

        bystander.greeter.hosted.handlers["SayHello"] = answer  # type: ignore[index]
        feed()
        runner.run_until_idle()
        frames_per_turn = BYTES_PER_TURN // BYTES_OF_A_FRAME
        waited = [later - sooner for sooner, later in pairwise([0, *answered])]
        assert len(waited) == 3
        assert max(waited) <= frames_per_turn
        close_all([*hosts, bystander])

    def test_frames_of_two_busy_connections_alternate_and_keep_their_order(
        self, runner: FakeTaskRunner
    ) -> None:
        order: list[bytes] = []
        turns = Turns(runner)
        hosts = [HostEnd(runner, turns=turns) for _ in range(2)]
        for number, host in enumerate(hosts):
            host.greeter.calls = order
            each = [hello(b"%d %d" % (number, count)) for count in range(self.FRAMES)]
            host.far.send(b"".join(each))
        runner.run_until_idle()
        for number in range(2):
            mine = [call for call in order if call.startswith(b"%d " % number)]
            assert mine == [b"%d %d" % (number, count) for count in range(self.FRAMES)]
        first_of_second = order.index(b"1 0")
        assert first_of_second < order.index(b"0 %d" % (self.FRAMES - 1))
        close_all(hosts)

    def test_all_frames_of_a_disconnected_peer_are_handled(self, runner: FakeTaskRunner) -> None:
        host = HostEnd(runner)
        host.far.send(hello(b"a") * self.FRAMES)
        host.far.close()
        runner.run_until_idle()
        assert len(host.greeter.calls) == self.FRAMES
        assert host.closed == 1

    def test_connection_closed_between_turns_handles_no_further_frames(
        self, runner: FakeTaskRunner
    ) -> None:
        host = HostEnd(runner)

        def close(request: Raw, deferred: object) -> None:
            calls.append(request.data)
            runner.post(host.connection.close)

        calls: list[bytes] = []
        host.greeter.hosted.handlers["SayHello"] = close  # type: ignore[index]
        host.far.send(hello() * self.FRAMES)
        runner.run_until_idle()
        assert 0 < len(calls) < self.FRAMES
        assert host.closed == 1
        assert not runner.watched
        host.far.close()

    def test_descriptor_arrives_with_its_frame(self, runner: FakeTaskRunner) -> None:
        """Earlier frames are handled before the descriptor's frame is received."""
        host = HostEnd(runner)
        read_fd, write_fd = os.pipe()
        os.write(write_fd, b"through a pipe")
        host.far.send(hello() * self.FRAMES)
        host.far.send(invoke("ReadFd", 2), read_fd)
        host.far.send(hello(b"after") * self.FRAMES)
        runner.run_until_idle()
        assert b"through a pipe" in drain(host.far)
        assert len(host.greeter.calls) == 2 * self.FRAMES
        os.close(read_fd)
        os.close(write_fd)
        close_all([host])

    def test_fast_path_gets_the_bytes_of_at_most_one_turn(self, runner: FakeTaskRunner) -> None:
        frame = hello(bytes(1000))
        handled: list[int] = []

        def take(data: memoryview, most: int, consume: Consume) -> None:
            frames = min(-(-most // len(frame)), len(data) // len(frame))
            handled.append(frames)
            consume(frames * len(frame))

        host = HostEnd(runner, fast_path=take)
        host.far.send(frame * 60)
        runner.run_until_idle()
        assert max(handled) == -(-BYTES_PER_TURN // len(frame))
        assert sum(handled) == 60
        assert host.greeter.calls == []
        close_all([host])

    def test_huge_frame_length_after_a_turn_ends_the_connection(
        self, runner: FakeTaskRunner
    ) -> None:
        host = HostEnd(runner)
        frames = BYTES_PER_TURN // BYTES_OF_A_FRAME + 1
        host.far.send(hello() * frames + b"\xff\xff\xff\x7f")
        runner.run_until_idle()
        assert host.closed == 1
        assert "announced a frame of 2147483647 bytes" in host.cut_off[0]
        host.far.close()


def close_all(hosts: list[HostEnd]) -> None:
    for host in hosts:
        host.connection.close()
        host.far.close()


class TestListener:
    def test_listener_accepts_until_it_is_closed(
        self, runner: FakeTaskRunner, tmp_path: Path
    ) -> None:
        accepted: list[UnixSocket] = []
        address = str(tmp_path / "socket")
        listener = Listener(UnixListener(address), runner, accepted.append)
        clients = [UnixSocket.connect(address) for _ in range(3)]
        runner.run_until_idle()
        assert len(accepted) == 3
        listener.close()
        listener.close()
        with pytest.raises(TransportError):
            UnixSocket.connect(address)
        for end in clients + accepted:
            end.close()

    def test_listener_pauses_when_no_descriptors_are_left(
        self, runner: FakeTaskRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        accepted: list[UnixSocket] = []
        lines: list[str] = []
        socket = UnixListener(str(tmp_path / "socket"))
        listener = Listener(socket, runner, accepted.append, lambda error: lines.append(str(error)))

        def fail(self: UnixListener) -> UnixSocket | None:
            raise TransportError(os.strerror(errno.EMFILE))

        client = UnixSocket.connect(str(tmp_path / "socket"))
        with monkeypatch.context() as patch:
            patch.setattr(UnixListener, "accept", fail)
            runner.run_until_idle()
            assert not runner.watched
            runner.advance(RETRY_MS)
        assert not runner.watched
        assert lines == [os.strerror(errno.EMFILE)]  # The failure is reported only once.
        runner.advance(RETRY_MS)
        assert len(accepted) == 1
        listener.close()
        for end in [client, *accepted]:
            end.close()


class TestExceptionsInHandlers:
    """An exception in a handler does not delay later frames."""

    def test_frames_after_a_failed_frame_are_handled_without_delay(
        self, runner: FakeTaskRunner
    ) -> None:
        host = HostEnd(runner)
        host.far.send(invoke("Fail", 1) + hello(b"a", 2) + invoke("Fail", 3) + hello(b"b", 4))
        errors = 0
        for _ in range(3):
            try:
                runner.run_until_idle()
            except ZeroDivisionError:
                errors += 1
                assert host.greeter.calls == [b"a", b"b"]
        assert errors == 2
        host.connection.close()
        host.far.close()

    def test_frames_of_a_failed_fast_path_are_handled_by_the_handlers(
        self, runner: FakeTaskRunner
    ) -> None:
        def fail(_data: memoryview, _most: int, _consume: Consume) -> None:
            raise ZeroDivisionError("a bug")

        host = HostEnd(runner, fast_path=fail)
        host.far.send(hello(b"a"))
        with pytest.raises(ZeroDivisionError):
            runner.run_until_idle()
        assert host.greeter.calls == [b"a"]
        host.connection.close()
        host.far.close()


def invoke(method: str, request_id: int) -> bytes:
    call = IPCFrame.InvokeMethod(service_id=1, method_id=GREETER.method_id(method))
    return encode_frame(IPCFrame(request_id=request_id, msg_invoke_method=call))
