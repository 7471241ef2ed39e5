"""Messages are sent over sockets; invalid messages of peers are refused."""

from __future__ import annotations

import array
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest

from stretto_fidl.bindings import ChannelEnd, Event, Vmo
from stretto_fidl.codec import Message, TransactionHeader
from stretto_fidl.codec.handle import VMO, Handle, HandleDisposition
from stretto_fidl.codec.wire_error import WireError
from stretto_fidl.errors import FidlError
from stretto_fidl.transport.errors import ClosedError, PeerError
from stretto_fidl.transport.message_socket import MessageSocket

HEADER = TransactionHeader(1, 2).encode()
KINDS = {"packets": socket.SOCK_SEQPACKET, "stream": socket.SOCK_STREAM}
DONTWAIT = socket.MSG_DONTWAIT


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@pytest.fixture(params=KINDS)
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, MessageSocket]]:
    """Yield the peer's socket and our end."""
    peer, own = socket.socketpair(socket.AF_UNIX, KINDS[request.param])
    peer.settimeout(30)
    ours = MessageSocket(ChannelEnd(own.detach()))
    yield peer, ours
    peer.close()
    ours.close()


def read(ours: MessageSocket, flags: int = 0) -> tuple[bytes, list[Handle]] | None:
    """Read one message, and clear the attribute `message` of the socket."""
    got = ours.read(flags)
    ours.message = None
    return got


def raw(ours: MessageSocket, data: bytes, handles: int = 0) -> bytes:
    """Return the bytes that a peer writes for a message."""
    return (struct.pack("<II", len(data), handles) if ours.is_stream else b"") + data


def send_fds(peer: socket.socket, data: bytes, count: int) -> None:
    with open("/dev/null") as file:
        fds = array.array("i", [file.fileno()] * count)
        peer.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])


def test_messages_keep_their_boundaries_and_handles(ends) -> None:
    peer, ours = ends
    other = MessageSocket(ChannelEnd(peer.detach()))
    vmo, event = Vmo.create(b"content"), Event.create()
    ours.write(Message(HEADER, [HandleDisposition(vmo, VMO)]))
    ours.write(Message(HEADER + b"second", []))
    ours.write(Message(HEADER + b"third", [HandleDisposition(event)]))
    assert not vmo.is_open
    assert not event.is_open
    data, handles = read(other)
    assert data == HEADER
    assert [type(handle) for handle in handles] == [Vmo]
    assert handles[0].read() == b"content"
    assert read(other) == (HEADER + b"second", [])
    data, (got,) = read(other)
    assert (data, type(got)) == (HEADER + b"third", Event)
    with pytest.raises(BlockingIOError):
        read(other, DONTWAIT)
    other.close()


def test_message_with_the_maximum_of_bytes_and_handles_is_read(ends) -> None:
    peer, ours = ends
    data = HEADER + bytes(65536 - 16)
    before = descriptors()
    send_fds(peer, raw(ours, data, 64), 64)
    got, handles = read(ours)
    assert got == data
    assert len(handles) == 64
    for handle in handles:
        handle.close()
    assert descriptors() == before


def test_message_above_the_byte_limit_is_refused(ends) -> None:
    peer, ours = ends
    before = descriptors()
    send_fds(peer, raw(ours, HEADER + bytes(65536), 1), 1)
    with pytest.raises(PeerError):
        read(ours)
    assert descriptors() == before


@pytest.mark.parametrize("count", [65, 200])
def test_handles_above_the_limit_are_closed(ends, count: int) -> None:
    peer, ours = ends
    before = descriptors()
    send_fds(peer, raw(ours, HEADER, 64), count)
    with pytest.raises(PeerError):
        read(ours)
    assert descriptors() == before


def test_closed_peer_ends_reads_and_refuses_writes(ends) -> None:
    peer, ours = ends
    peer.send(raw(ours, HEADER))
    peer.close()
    assert read(ours) == (HEADER, [])
    assert read(ours) is None
    with pytest.raises(ClosedError):
        ours.write(Message(HEADER, []))


def test_message_written_before_a_reset_is_read(ends) -> None:
    peer, ours = ends
    ours.write(Message(HEADER, []))
    peer.send(raw(ours, HEADER + b"last"))
    peer.close()  # close() resets the connection, because HEADER is unread
    assert read(ours) == (HEADER + b"last", [])
    assert read(ours) is None


def test_message_with_a_refused_handle_is_not_sent(ends) -> None:
    peer, ours = ends
    event = Event.create()
    with pytest.raises(WireError):
        ours.write(Message(HEADER, [HandleDisposition(event, VMO)]))
    assert event.is_open
    peer.setblocking(False)
    with pytest.raises(BlockingIOError):
        peer.recv(1)


@pytest.mark.parametrize("ends", ["stream"], indirect=True)
@pytest.mark.parametrize("size", [0, 15, 65537, 0xFFFFFFFF])
def test_frame_with_an_invalid_size_is_refused(ends, size: int) -> None:
    peer, ours = ends
    peer.send(struct.pack("<II", size, 0))
    with pytest.raises(PeerError):
        read(ours)


@pytest.mark.parametrize("ends", ["stream"], indirect=True)
def test_frame_received_byte_by_byte_is_read(ends) -> None:
    peer, ours = ends
    frame = raw(ours, HEADER + b"in pieces", 1)
    send_fds(peer, frame[:1], 1)
    for at in range(1, len(frame)):
        with pytest.raises(BlockingIOError):
            read(ours, DONTWAIT)
        peer.send(frame[at : at + 1])
    data, handles = read(ours, DONTWAIT)
    assert data == HEADER + b"in pieces"
    assert len(handles) == 1
    handles[0].close()


@pytest.mark.parametrize("ends", ["stream"], indirect=True)
@pytest.mark.parametrize(("promised", "sent"), [(1, 2), (2, 1)])
def test_frame_with_a_wrong_number_of_handles_is_refused(ends, promised: int, sent: int) -> None:
    peer, ours = ends
    before = descriptors()
    send_fds(peer, raw(ours, HEADER, promised), sent)
    with pytest.raises(PeerError):
        read(ours)
    assert descriptors() == before


@pytest.mark.parametrize("ends", ["stream"], indirect=True)
def test_truncated_frame_is_refused(ends) -> None:
    peer, ours = ends
    before = descriptors()
    send_fds(peer, raw(ours, HEADER, 1)[:-1], 1)
    peer.close()
    with pytest.raises(PeerError, match="in the middle of a message"):
        read(ours)
    assert len(descriptors()) == len(before) - 1


@pytest.mark.parametrize("ends", ["stream"], indirect=True)
def test_frame_that_does_not_fit_is_flushed_later(ends) -> None:
    peer, ours = ends
    message = Message(HEADER + bytes(60000), [])
    sent = 0
    while not ours.must_flush():
        try:
            ours.write(message, DONTWAIT)
        except BlockingIOError:
            break
        sent += 1
    expected, got = sent * (8 + len(message.data)), 0
    while got < expected:
        got += len(peer.recv(1 << 20))
        ours.flush(DONTWAIT)
    assert got == expected
    assert not ours.must_flush()


def test_endpoint_refuses_and_closes_descriptors_of_unsuitable_kinds() -> None:
    before = descriptors()
    with pytest.raises(FidlError):
        MessageSocket(ChannelEnd(Event.create().detach()))
    with pytest.raises(FidlError):
        MessageSocket(ChannelEnd(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).detach()))
    assert descriptors() == before


def test_socket_that_is_left_at_the_exit_of_the_interpreter_is_closed_without_a_message() -> None:
    # That module is cleared late, when the globals of modules imported later are None.
    program = (
        "import socket, sys\n"
        "from stretto_fidl.bindings import ChannelEnd\n"
        "from stretto_fidl.transport import message_socket\n"
        "peer, own = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        "peer.close()\n"
        "left = message_socket, message_socket.MessageSocket(ChannelEnd(own.detach()))\n"
        "sys.modules['_frozen_importlib'].left = left\n"
    )
    command = [sys.executable, "-W", "error", "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert run.stderr == ""
