"""A small RPC over a stream socket that calls the hooks of `stretto.base.rpc_hooks`.

A frame has sixteen bytes: kind, transaction, serial number of the message, size. The program

    python framed_rpc.py SOCKET MESSAGES ENABLE_AT

is a server, which starts a client with four sending threads in a second process. Each process
starts tracing after its ENABLE_AT-th message.
"""

from __future__ import annotations

import random
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext

import stretto
from stretto import flows
from stretto.base import rpc_hooks
from stretto.base.rpc_hooks import EVENT, ONE_WAY, REPLY, REQUEST, RpcChannel, RpcMethod

CATEGORY = "test.framed"
FRAME = struct.Struct("=IIII")
SERVICE = "Framed"
THREADS = 4


class FramedChannel:
    """One end of the connection: any thread can send, one thread receives."""

    def __init__(self, end: socket.socket, *, is_server: bool) -> None:
        self.end = end
        self.channel = RpcChannel(end, is_server=is_server)
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        self._txid = 0

    def send(self, kind: int, serial: int, txid: int = 0) -> int:
        """Send a message; return its transaction id."""
        hooks = rpc_hooks.hooks
        span = None
        with self._write_lock:
            if kind == REQUEST:
                self._txid += 1
                txid = self._txid
            stamp = hooks.now() if hooks is not None else 0
            self.end.sendall(FRAME.pack(kind, txid, serial, 0))
            if hooks is not None:
                span = hooks.sent(self.channel, stamp, method(kind, serial), kind, txid, FRAME.size)
        if span is not None:
            with span:
                pass
        return txid

    def receive(self, handle: Callable[[int, int, int], object]) -> bool:
        """Receive a message and handle it; return False if the peer has closed the connection."""
        hooks = rpc_hooks.hooks
        span = None
        with self._read_lock:
            data = self.end.recv(FRAME.size, socket.MSG_WAITALL)
            if len(data) < FRAME.size:
                return False
            kind, txid, serial, _ = FRAME.unpack(data)
            if hooks is not None:
                span = hooks.received(self.channel, method(kind, serial), kind, txid, FRAME.size)
        with span or nullcontext():
            handle(kind, txid, serial)
        return True


def method(kind: int, serial: int) -> RpcMethod:
    """Return a method for one message; the method's ordinal is the message's serial number."""
    return RpcMethod(SERVICE, ("ask", "tell", "event", "ask")[kind], serial, CATEGORY)


class _EnableLater:
    """Counts messages; enables the category of the RPC after the message with the given number."""

    def __init__(self, at: int) -> None:
        self._left = at
        flows.disable(CATEGORY)

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            flows.enable(CATEGORY)


def server(path: str, messages: int, enable_at: int) -> None:
    """Answer requests, and send an event after every tenth message."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        command = [sys.executable, __file__, path, str(messages), str(enable_at), "client"]
        with subprocess.Popen(command) as child:
            end, _ = listening.accept()
            with end:
                serve(FramedChannel(end, is_server=True), enable_at)
    if child.returncode:
        raise SystemExit(child.returncode)


def serve(channel: FramedChannel, enable_at: int) -> None:
    """Run the server until the client closes the connection."""
    count = _EnableLater(enable_at)

    def handle(kind: int, txid: int, serial: int) -> None:
        count()
        if kind == REQUEST:
            channel.send(REPLY, serial, txid)
        if serial % 10 == 0:
            channel.send(EVENT, serial + (1 << 24))

    while channel.receive(handle):
        pass


def client(path: str, messages: int, enable_at: int) -> None:
    """Run the client: send from four threads while a fifth thread receives."""
    end = socket.socket(socket.AF_UNIX)
    end.connect(path)
    channel = FramedChannel(end, is_server=False)
    count = _EnableLater(enable_at)

    def receive() -> None:
        while channel.receive(lambda *_: None):
            pass

    def send(first: int) -> None:
        draw = random.Random(first)
        for serial in range(first, messages, THREADS):
            channel.send(REQUEST if draw.random() < 0.2 else ONE_WAY, serial)
            count()

    receiver = threading.Thread(target=receive)
    senders = [threading.Thread(target=send, args=(first,)) for first in range(THREADS)]
    receiver.start()
    for thread in senders:
        thread.start()
    for thread in senders:
        thread.join()
    end.shutdown(socket.SHUT_WR)
    receiver.join()
    end.close()


if __name__ == "__main__":
    # Threads switch often, so that a test fails if messages are counted outside of the lock.
    sys.setswitchinterval(1e-5)
    flows.install()
    run = client if sys.argv[4:] else server
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    if flows.stats() or not stretto.available():
        raise SystemExit(f"without arrows: {flows.stats()}")
