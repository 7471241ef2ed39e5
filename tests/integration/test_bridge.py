"""`stretto bridge` between a client's WebSocket and a service that answers with what it hears."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.viewer.connection_slots import MAX_CONNECTIONS
from stretto.viewer.http_connection import IDLE_MS
from stretto.viewer.websocket_frames import BINARY, CLOSE
from tests.support.commands import DEADLINE_S, Command
from tests.support.other_user import ROOT_ONLY, as_user, can_be_another_user
from tests.support.websocket_client import client_frame, handshake, server_frames

GOODBYE = client_frame(CLOSE, (1000).to_bytes(2))


class Echo:
    """A service on a unix socket: says everything back."""

    def __init__(self, path: Path) -> None:
        self.connections = 0
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                end, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            self._threads.append(threading.Thread(target=self._serve, args=(end,)))
            self._threads[-1].start()

    def _serve(self, end: socket.socket) -> None:
        with end:
            while data := end.recv(1 << 16):
                end.sendall(data)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(DEADLINE_S)
        self._listening.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "consumer"


@pytest.fixture
def bridge(path: Path) -> Iterator[Command]:
    environment = {"PERFETTO_CONSUMER_SOCK_NAME": str(path)}
    with Command("bridge", "--port", "0", environment=environment) as command:
        yield command


@pytest.fixture
def service(path: Path) -> Iterator[Echo]:
    echo = Echo(path)
    yield echo
    echo.close()


def port_of(bridge: Command) -> int:
    found = re.search(r"ws://127\.0\.0\.1:(\d+)/traced", bridge.line_with("ws://"))
    assert found is not None
    return int(found[1])


def dial(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), DEADLINE_S)


def hear(page: socket.socket, size: int) -> bytes:
    """The payloads of the frames that come, until they are of `size` bytes."""
    data = b""
    while True:
        data += page.recv(1 << 16)
        try:
            frames = server_frames(data)
        except (AssertionError, IndexError):
            continue
        payload = b"".join(payload for opcode, payload in frames if opcode == BINARY)
        if len(payload) >= size:
            return payload


def upgraded(port: int) -> socket.socket:
    page = dial(port)
    try:
        page.sendall(handshake(host=f"127.0.0.1:{port}"))
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += (got := page.recv(1))
            if not got:
                raise ConnectionError("hung up on")
        assert answer.startswith(b"HTTP/1.1 101 ")
    except BaseException:
        page.close()
        raise
    return page


def status(port: int, request: bytes) -> int:
    with dial(port) as page:
        page.sendall(request)
        return int(page.recv(1 << 16).split()[1])


def test_bytes_go_through_and_come_back(service: Echo, bridge: Command) -> None:
    port = port_of(bridge)
    payload = bytes(range(256)) * 4000
    with upgraded(port) as page, upgraded(port) as other:
        writer = threading.Thread(target=page.sendall, args=(client_frame(BINARY, payload),))
        writer.start()
        assert hear(page, len(payload)) == payload
        writer.join(DEADLINE_S)
        other.sendall(client_frame(BINARY, b"meanwhile"))
        assert hear(other, 9) == b"meanwhile"
        page.sendall(GOODBYE)
        assert server_frames(page.recv(1 << 16)) == [(CLOSE, (1000).to_bytes(2))]
        assert page.recv(1) == b""
    assert bridge.interrupt() == 0


def test_a_service_that_comes_later(bridge: Command, path: Path) -> None:
    port = port_of(bridge)
    bridge.line_with("Start `stretto traced`")
    request = handshake(host=f"127.0.0.1:{port}")
    assert status(port, request) == 503
    bridge.line_with("refused a page")
    echo = Echo(path)
    try:
        with upgraded(port) as page:
            page.sendall(client_frame(BINARY, b"there"))
            assert hear(page, 5) == b"there"
    finally:
        echo.close()


def test_who_may_not(service: Echo, bridge: Command) -> None:
    port = port_of(bridge)
    host = f"127.0.0.1:{port}"
    assert status(port, handshake(host=host, origin="https://evil.example")) == 403
    assert status(port, handshake(host=f"evil.example:{port}")) == 403
    assert status(port, handshake(host=host, origin=None)) == 403
    assert status(port, handshake("/adb", host=host)) == 404


def test_too_many_connections_are_hung_up_on(service: Echo, bridge: Command) -> None:
    port = port_of(bridge)
    pages = [dial(port) for _ in range(MAX_CONNECTIONS)]
    try:
        with dial(port) as one_more:
            one_more.settimeout(IDLE_MS / 2000)  # later it would be hung up on for idling
            assert one_more.recv(1) == b""
    finally:
        for page in pages:
            page.close()
    # They have gone: there is room again, once the bridge has noticed.
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            upgraded(port).close()
            return
        except ConnectionError:
            assert time.monotonic() < deadline


@pytest.mark.skipif(not can_be_another_user(), reason=ROOT_ONLY)
def test_another_users_connections_keep_nobody_out(service: Echo, bridge: Command) -> None:
    port = port_of(bridge)
    with as_user(65534):
        strangers = [dial(port) for _ in range(2 * MAX_CONNECTIONS)]
    try:
        with upgraded(port) as page:
            page.sendall(client_frame(BINARY, b"here"))
            assert hear(page, 4) == b"here"
        # Those that say nothing are hung up on, much sooner than an idle page would be.
        for stranger in strangers:
            stranger.settimeout(IDLE_MS / 2000)
            assert stranger.recv(1) == b""
    finally:
        for stranger in strangers:
            stranger.close()


@pytest.mark.skipif(not can_be_another_user(), reason=ROOT_ONLY)
def test_another_user_is_told_so(service: Echo, bridge: Command) -> None:
    port = port_of(bridge)
    with as_user(65534):
        assert status(port, handshake(host=f"127.0.0.1:{port}")) == 403
