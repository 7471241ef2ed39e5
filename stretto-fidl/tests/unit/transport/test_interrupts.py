"""An exception of a signal handler in one thread loses no message of other threads."""

from __future__ import annotations

import signal
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from fidl_support.talk import Talker, talk
from stretto.base import rpc_hooks
from stretto.base.rpc_hooks import ONE_WAY
from stretto_fidl.bindings import ChannelEnd, channel
from stretto_fidl.codec import Message, TransactionHeader
from stretto_fidl.transport import Client, ClosedError
from stretto_fidl.transport import Server as TalkServer
from stretto_fidl.transport.blocking_endpoint import BlockingEndpoint
from stretto_fidl.transport.message_socket import MessageSocket
from tests.support.interrupts import interrupted

FIRE = talk.Talk.BY_NAME["Fire"]
KINDS = pytest.mark.parametrize("kind", [socket.SOCK_SEQPACKET, socket.SOCK_STREAM])
TRANSPORT = "stretto_fidl/transport/"


def places(interrupt) -> int:
    """Call `interrupt` for each place where a signal may arrive; return the number of places."""
    place = 0
    while interrupt(place):
        place += 1
    return place


class Caller(threading.Thread):
    """A thread that calls the server."""

    def __init__(self, client: Client, number: int) -> None:
        super().__init__(daemon=True)
        self.answer = 0
        self._call = lambda: client.Echo(number=number).number
        self.start()

    def run(self) -> None:
        self.answer = self._call()


class WatchedClient(Client):
    """A client in which no other thread reads before the main thread.

    Attributes:
        was_read: Whether the main thread has begun to read.
    """

    was_read = False

    @property
    def _reader(self):
        own = threading.current_thread() is threading.main_thread()
        return self.__dict__.get("reader") if own or self.was_read else self

    @_reader.setter
    def _reader(self, waiter) -> None:
        self.was_read = self.was_read or waiter is not None
        self.__dict__["reader"] = waiter


class Server(threading.Thread):
    """A server that answers the first request only when it answers the second."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__(daemon=True)
        self.requests: list[bytes] = []
        self._end = MessageSocket(ChannelEnd(end.detach()))
        self.start()

    def run(self) -> None:
        answered = 0
        while (got := self._end.read()) is not None:
            self._end.message = None
            self.requests.append(got[0])
            while answered < len(self.requests) > 1:
                self._end.write(Message(self.requests[answered], []))
                answered += 1
        self._end.close()


@KINDS
def test_interrupted_reader_delivers_the_replies_of_other_callers(kind: int) -> None:
    def interrupt(place: int) -> bool:
        own, peer = socket.socketpair(socket.AF_UNIX, kind)
        server = Server(peer)
        with WatchedClient(talk.Talk, ChannelEnd(own.detach())) as client:
            other = Caller(client, 1)
            while not server.requests:
                other.join(0.001)
            came = interrupted(lambda: client.Echo(number=2), place, TRANSPORT)
            # If the interrupted call read nothing, the other thread gets its reply only when
            # another call reads.
            if not client.was_read:
                client.Echo(number=3)
            other.join(30)
            assert other.answer == 1, f"interrupted at place {place}"
            assert client.Echo(number=4).number == 4
        server.join(30)
        return came

    assert places(interrupt) > 50


def frames(peer: socket.socket) -> list[bytes]:
    """Return all messages that the peer received until the connection ended."""
    with peer.makefile("rb") as file:
        data = file.read()
    found, at = [], 0
    while at < len(data):
        size, _ = struct.unpack_from("<II", data, at)
        found.append(data[at + 8 : at + 8 + size])
        assert len(found[-1]) == size, "the last message was cut off"
        at += 8 + size
    return found


def test_interrupted_write_is_finished_before_the_next_message() -> None:
    header = TransactionHeader(0, FIRE.ordinal).encode()
    messages = [header + bytes([number]) * 30_000 for number in range(1, 4)]

    def interrupt(place: int) -> bool:
        own, peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        end = BlockingEndpoint(talk.Talk, ChannelEnd(own.detach()), is_server=False)
        facts = end.methods[FIRE.ordinal]
        got: list[bytes] = []
        reader = threading.Thread(target=lambda: got.extend(frames(peer)), daemon=True)
        reader.start()

        def write(number: int) -> None:
            end.write(facts, ONE_WAY, lambda: (0, Message(messages[number], [])))

        came = interrupted(lambda: write(0), place, TRANSPORT)
        write(1)
        write(2)
        end.close()
        reader.join(30)
        peer.close()
        assert got in (messages, messages[1:]), f"interrupted at place {place}"
        return came

    assert places(interrupt) > 30


def test_interrupted_call_releases_its_locks() -> None:
    own, peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client = Client(talk.Talk, ChannelEnd(own.detach()), timeout=30)

    def interrupt(place: int) -> bool:
        came = interrupted(lambda: client.Fire(number=place), place, TRANSPORT)
        client.Fire(number=place)  # This call times out if the interrupted call still holds a lock.
        assert peer.recv(100)
        return came

    assert places(interrupt) > 20
    client.close()
    peer.close()


class Counting:
    """Hooks that count messages as a tracer does."""

    def __init__(self) -> None:
        self.counted, self.lost_count = [0, 0], [False, False]

    def now(self) -> int:
        return 0

    def opened(self, channel) -> None:
        """Do nothing."""

    def sent(self, *_) -> None:
        self.counted[True] += 1

    def received(self, *_) -> None:
        self.counted[False] += 1

    def lost(self, _, outgoing: bool) -> None:
        self.lost_count[outgoing] = True


@pytest.mark.parametrize("outgoing", [False, True])
def test_hooks_count_each_interrupted_message_or_report_that_the_count_is_lost(
    outgoing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = 0

    def interrupt(place: int) -> bool:
        nonlocal lost
        own, peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        monkeypatch.setattr(rpc_hooks, "hooks", hooks := Counting())
        with peer, Client(talk.Talk, ChannelEnd(own.detach())) as client:
            went = 0
            if outgoing:
                came = interrupted(lambda: client.Fire(number=1), place, TRANSPORT)
                peer.setblocking(False)
                with suppress(BlockingIOError):
                    went += bool(peer.recv(100))
            else:
                event = TransactionHeader(0, talk.Talk.BY_NAME["OnTick"].ordinal).encode()
                for _ in range(2):
                    went += bool(peer.send(event + bytes(8)))
                came = interrupted(client.next_event, place, TRANSPORT)
                peer.close()
                assert len(list(client.events())) >= 1 or not came
            if not hooks.lost_count[outgoing]:
                assert hooks.counted[outgoing] == went, f"interrupted at place {place}"
        lost += hooks.lost_count[outgoing]
        return came

    assert places(interrupt) > 20
    assert lost, "no place was within the count"


@contextmanager
def alarm(handler) -> Iterator[None]:
    """Call `handler` by a signal after 50 ms."""
    before = signal.signal(signal.SIGALRM, lambda *_: handler())
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_signal_handler_may_close_the_server() -> None:
    near, far = channel()
    server = TalkServer(talk.Talk, far, Talker())
    with near:
        fd = server._endpoint.socket.fileno()
        assert fd >= 0
        with alarm(server.close):
            server.serve()
        assert server._endpoint.socket.fileno() < 0
    for use in (lambda c: c.next_event(), lambda c: c.Echo(number=1)):
        near, far = channel()
        client = Client(talk.Talk, near)
        with far, alarm(client.close), suppress(ClosedError):
            assert use(client) is None
        assert client._endpoint.socket.fileno() < 0
