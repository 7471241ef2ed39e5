"""`stretto bridge` relays bytes between the WebSocket of a client and an echo service."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidMessage, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from stretto.viewer.access import PUBLIC_UI
from stretto.viewer.bridge import HANDSHAKE_S
from stretto.viewer.connection_slots import MAX_CONNECTIONS
from tests.support.commands import DEADLINE_S, Command
from tests.support.other_user import ROOT_ONLY, as_user, can_be_another_user
from tests.unit.viewer.test_sdk_config import start, track_events

pytestmark = pytest.mark.thorough


class Echo:
    """An echo service on a unix socket."""

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


def page(port: int, origin: str = PUBLIC_UI, path: str = "/traced") -> ClientConnection:
    """Connect to the bridge as a page of this origin does."""
    return connect(f"ws://127.0.0.1:{port}{path}", origin=Origin(origin), open_timeout=DEADLINE_S)


def refusal(port: int, **options: str) -> int:
    """Connect as a page that the bridge refuses; return the HTTP status."""
    with pytest.raises(InvalidStatus) as caught:
        page(port, **options)
    return caught.value.response.status_code


def receive(page: ClientConnection, size: int) -> bytes:
    data = b""
    while len(data) < size:
        message = page.recv(DEADLINE_S)
        assert isinstance(message, bytes)
        data += message
    return data


def test_bytes_are_relayed_in_both_directions(service: Echo, bridge: Command) -> None:
    port = port_of(bridge)
    payload = bytes(range(256)) * 4000
    with page(port) as one, page(port) as other:
        writer = threading.Thread(target=one.send, args=(payload,))
        writer.start()
        assert receive(one, len(payload)) == payload
        writer.join(DEADLINE_S)
        other.send(b"meanwhile")
        assert receive(other, 9) == b"meanwhile"
    assert bridge.interrupt() == 0


def test_recording_of_track_events_without_a_category_gets_advice(
    service: Echo, bridge: Command
) -> None:
    message = start(track_events())
    with page(port_of(bridge)) as one:
        one.send(message)
        assert receive(one, len(message)) == message
        assert "without a category" in bridge.line_with("Perfetto SDK")
    assert bridge.interrupt() == 0


def test_ctrl_c_ends_the_bridge_while_pages_are_connected(service: Echo, bridge: Command) -> None:
    with page(port_of(bridge)) as connected:
        connected.send(b"here")
        assert receive(connected, 4) == b"here"
        assert bridge.interrupt() == 0
    assert "Traceback" not in bridge.said


def test_service_can_start_after_the_bridge(bridge: Command, path: Path) -> None:
    port = port_of(bridge)
    bridge.line_with("Start `stretto traced`")
    assert refusal(port) == 503
    bridge.line_with("refused a page")
    echo = Echo(path)
    try:
        with page(port) as connected:
            connected.send(b"there")
            assert receive(connected, 5) == b"there"
    finally:
        echo.close()


def test_page_of_another_origin_or_path_is_refused(service: Echo, bridge: Command) -> None:
    port = port_of(bridge)
    assert refusal(port, origin="https://evil.example") == 403
    assert refusal(port, path="/adb") == 404


def test_connections_above_the_limit_are_closed(service: Echo, bridge: Command) -> None:
    port = port_of(bridge)
    ends = [dial(port) for _ in range(MAX_CONNECTIONS)]
    try:
        with dial(port) as one_more:
            one_more.settimeout(HANDSHAKE_S / 2)  # shorter than the limit for idle pages
            assert one_more.recv(1) == b""
    finally:
        for end in ends:
            end.close()
    # The bridge accepts a new connection as soon as it notices that old connections are closed.
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            with page(port):
                return
        except (OSError, InvalidMessage):
            assert time.monotonic() < deadline


@pytest.mark.skipif(not can_be_another_user(), reason=ROOT_ONLY)
def test_connections_of_another_user_do_not_use_up_the_limit(
    service: Echo, bridge: Command
) -> None:
    port = port_of(bridge)
    with as_user(65534):
        strangers = [dial(port) for _ in range(2 * MAX_CONNECTIONS)]
    try:
        with page(port) as connected:
            connected.send(b"here")
            assert receive(connected, 4) == b"here"
        # The bridge closes a connection without a handshake much earlier than one of an idle page.
        for stranger in strangers:
            stranger.settimeout(HANDSHAKE_S / 2)
            assert stranger.recv(1) == b""
    finally:
        for stranger in strangers:
            stranger.close()


@pytest.mark.skipif(not can_be_another_user(), reason=ROOT_ONLY)
def test_page_of_another_user_is_refused(service: Echo, bridge: Command) -> None:
    port = port_of(bridge)
    with as_user(65534):
        assert refusal(port) == 403
