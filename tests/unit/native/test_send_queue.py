from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from stretto import _native
from tests.unit.native.pipeline import field


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


Pair = tuple[socket.socket, socket.socket]


def receive_all(peer: socket.socket) -> bytes:
    data = b""
    while True:
        try:
            piece = peer.recv(1 << 20)
        except BlockingIOError:
            return data
        if not piece:
            return data
        data += piece


class TestPushFrame:
    def test_frame_is_sent_immediately_if_possible(self, pair: Pair) -> None:
        queue = _native.SendQueue(pair[0].fileno())
        assert queue.push(b"frame")
        assert queue.push(frame=bytearray(b"more"), fd=-1)
        assert receive_all(pair[1]) == b"framemore"
        assert queue.pending == 0

    def test_frames_are_queued_up_to_the_limit_and_refused_above_it(self, pair: Pair) -> None:
        queue = _native.SendQueue(pair[0].fileno(), limit=100000)
        count = 0
        while queue.push(count.to_bytes(4, "little") * 5000):
            count += 1
        assert 0 < queue.pending <= 100000
        assert queue.frames_refused == 1
        data = b""
        while len(data) < count * 20000:
            data += receive_all(pair[1])
            queue.drain()
        assert data == b"".join(n.to_bytes(4, "little") * 5000 for n in range(count))

    def test_descriptor_is_sent_with_its_frame(self, pair: Pair) -> None:
        queue = _native.SendQueue(pair[0].fileno())
        read, write = os.pipe()
        assert queue.push(b"fd", write)
        os.close(write)
        data, fds, _flags, _address = socket.recv_fds(pair[1], 10, 1)
        assert data == b"fd"
        os.write(fds[0], b"through")
        assert os.read(read, 10) == b"through"
        os.close(fds[0])
        os.close(read)

    def test_too_long_frame_is_an_error(self, pair: Pair) -> None:
        queue = _native.SendQueue(pair[0].fileno())
        with pytest.raises(ValueError, match="too long for a frame; split it"):
            queue.push(bytes(131073))
        with pytest.raises(ValueError, match="too long for a frame; split it"):
            queue.invoke(1, 1, bytes(131072), True)


class TestInvokeMethod:
    def test_invoke_encodes_a_frame_with_ascending_request_ids(self, pair: Pair) -> None:
        queue = _native.SendQueue(pair[0].fileno())
        assert queue.next_request_id() == 1
        assert queue.invoke(3, 4, b"args", False) == 2
        invoke = field(1, 3) + field(2, 4) + field(3, b"args")
        payload = field(2, 2) + field(5, invoke)
        assert receive_all(pair[1]) == len(payload).to_bytes(4, "little") + payload
        assert queue.invoke(3, 4, b"", drop_reply=True) == 3
        assert receive_all(pair[1]).endswith(field(4, 1))


class TestBrokenQueue:
    def test_queue_is_broken_after_the_peer_closed(self, pair: Pair) -> None:
        queue = _native.SendQueue(pair[0].fileno())
        states = [queue.broken]
        pair[1].close()
        queue.push(b"x")
        states.append(queue.broken)
        assert states == [False, True]
        assert not queue.push(b"x")
        assert queue.invoke(1, 1, b"", True) == 0
        assert queue.pending == 0


class TestArgumentsOfSendQueue:
    def test_invalid_arguments_are_refused(self, pair: Pair) -> None:
        with pytest.raises(ValueError, match="fd must be from 0"):
            _native.SendQueue(-1)
        with pytest.raises(TypeError, match="fd must be an int"):
            _native.SendQueue(pair[0])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="limit must be from 1"):
            _native.SendQueue(pair[0].fileno(), 0)
        queue = _native.SendQueue(pair[0].fileno())
        with pytest.raises(TypeError, match="frame must be bytes-like"):
            queue.push("text")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="method_id must be from 0"):
            queue.invoke(1, -1, b"", True)
