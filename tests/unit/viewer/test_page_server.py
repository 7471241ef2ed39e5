"""The page server and its clients on real sockets, with a fake clock."""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from stretto.viewer.access import RequestFields
from stretto.viewer.connection_slots import MAX_CONNECTIONS, MAX_REFUSED_PER_USER
from stretto.viewer.page_server import IDLE_S, LINGER_S, REFUSED_S, PageServer
from stretto.viewer.response import BLOCK_BYTES, FileBody, HttpError, Response
from tests.support.polling import wait_until

pytestmark = pytest.mark.once

HANG_S = 30.0
CLOSING_REQUEST = b"GET /a HTTP/1.1\r\nConnection: close\r\n\r\n"
BIG = bytes(range(256)) * (64 * BLOCK_BYTES // 256) + b"end"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Library:
    """A site that serves small texts, a big file and errors."""

    def __init__(self, folder: Path) -> None:
        self.big = folder / "big"
        self.big.write_bytes(BIG)
        self.asked: list[str] = []
        self.delivered = Event()
        self.bodies: list[FileBody] = []

    def answer(self, method: str, path: str, fields: RequestFields) -> Response:
        self.asked.append(f"{method} {path}")
        if path in ("/big", "/last"):
            body = FileBody(os.open(self.big, os.O_RDONLY), len(BIG))
            self.bodies.append(body)
            return Response(200, (), body, self.delivered.set if path == "/last" else None)
        if path == "/none":
            raise HttpError(404, "there is none", (("X-Why", "because"),))
        return Response(200, body=f"{path}\n".encode())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


@pytest.fixture
def users() -> set[int]:
    return {os.geteuid()}


@pytest.fixture
def server(library: Library, clock: Clock, users: set[int]) -> Iterator[PageServer]:
    with PageServer(0, users, clock) as server:
        thread = Thread(target=server.serve, args=(library,))
        thread.start()
        yield server
        server.shutdown()
        thread.join(HANG_S)
    assert not thread.is_alive()


@pytest.fixture
def client(server: PageServer) -> Iterator[http.client.HTTPConnection]:
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG_S)
    yield client
    client.close()


def dial(server: PageServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), HANG_S)


def read_all(end: socket.socket) -> bytes:
    """Receive until the server closes the connection."""
    data = b""
    while block := end.recv(1 << 20):
        data += block
    return data


def exchange(server: PageServer, request: bytes) -> bytes:
    with dial(server) as end:
        end.sendall(request)
        return read_all(end)


class TestHttpResponses:
    def test_connection_is_kept_for_further_requests(
        self, client: http.client.HTTPConnection
    ) -> None:
        for path in ("/a", "/b?query", "/c%20d"):
            client.request("GET", path)
            response = client.getresponse()
            assert response.read() == {"/a": b"/a\n", "/b?query": b"/b\n"}.get(path, b"/c d\n")
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Connection"] == "keep-alive"
            assert response.headers["Server"] is None

    def test_requests_sent_together_are_answered_in_their_order(
        self, server: PageServer, library: Library
    ) -> None:
        paths = ["/a", "/big", "/none", "/b"]
        requests = [b"GET %b HTTP/1.1\r\n" % path.encode() for path in paths]
        heard = exchange(server, b"\r\n".join(requests) + b"Connection: close\r\n\r\n")
        assert library.asked == [f"GET {path}" for path in paths]
        assert heard.count(b"HTTP/1.1 ") == 4
        assert BIG in heard
        assert heard.endswith(b"\r\n\r\n/b\n")

    def test_error_response_contains_the_header_fields_of_the_error(
        self, client: http.client.HTTPConnection
    ) -> None:
        client.request("GET", "/none")
        response = client.getresponse()
        assert (response.status, response.headers["X-Why"]) == (404, "because")
        assert response.read() == b"stretto: there is none\n"

    def test_head_request_is_answered_without_a_body(
        self, client: http.client.HTTPConnection, library: Library
    ) -> None:
        for path, size in (("/a", 3), ("/big", len(BIG)), ("/none", 23)):
            client.request("HEAD", path)
            response = client.getresponse()
            assert response.headers["Content-Length"] == str(size)
            assert response.read() == b""
        assert len(library.bodies) == 1

    def test_files_are_closed_after_the_response(
        self, client: http.client.HTTPConnection, library: Library
    ) -> None:
        for method in ("GET", "HEAD", "GET"):
            client.request(method, "/big")
            client.getresponse().read()
        client.request("GET", "/a")
        client.getresponse().read()
        for body in library.bodies:
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(body._fd)

    def test_unknown_method_is_refused(
        self, client: http.client.HTTPConnection, library: Library
    ) -> None:
        client.request("DELETE", "/a")
        assert client.getresponse().status == 501
        assert library.asked == []

    @pytest.mark.parametrize(
        ("request_", "status"),
        [
            (b"nonsense\r\n\r\n", b"400"),
            (b"GET /" + bytes(70_000) + b" HTTP/1.1\r\n\r\n", b"414"),
            (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", b"431"),
            (b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", b"413"),
            (b"GET / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello", b"413"),
            (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"413"),
        ],
    )
    def test_malformed_request_ends_the_connection(
        self, server: PageServer, library: Library, request_: bytes, status: bytes
    ) -> None:
        heard = exchange(server, request_ + b"GET /a HTTP/1.1\r\n\r\n")
        assert heard.split(b" ")[:2] == [b"HTTP/1.1", status]
        assert b"\r\nConnection: close\r\n" in heard
        assert heard.count(b"HTTP/1.1") == 1
        assert library.asked == []


class TestDeliveryOfResponses:
    def test_last_response_is_reported_as_delivered_when_the_client_closes(
        self, client: http.client.HTTPConnection, library: Library
    ) -> None:
        client.request("GET", "/last")
        response = client.getresponse()
        assert response.headers["Connection"] == "close"
        assert response.read() == BIG
        client.close()
        assert library.delivered.wait(HANG_S)

    def test_response_to_a_client_that_closes_early_is_not_reported_as_delivered(
        self, server: PageServer, library: Library, clock: Clock
    ) -> None:
        end = dial(server)
        end.sendall(b"GET /last HTTP/1.1\r\n\r\n")
        assert end.recv(100).startswith(b"HTTP/1.1 200 OK")
        end.close()
        wait_until(lambda: not server._connections)
        assert not library.delivered.is_set()

    def test_response_to_a_head_request_is_not_reported_as_delivered(
        self, server: PageServer, library: Library
    ) -> None:
        assert b"200 OK" in exchange(server, b"HEAD /last HTTP/1.1\r\n\r\n")
        wait_until(lambda: not server._connections)
        assert not library.delivered.is_set()

    def test_connection_is_closed_if_the_file_shrinks(
        self, client: http.client.HTTPConnection, library: Library
    ) -> None:
        os.truncate(library.big, BLOCK_BYTES)
        client.request("GET", "/last")
        with pytest.raises(http.client.IncompleteRead) as caught:
            client.getresponse().read()
        assert caught.value.partial == BIG[:BLOCK_BYTES]
        assert not library.delivered.is_set()


def deadline(server: PageServer) -> float | None:
    """Return the deadline of the only connection."""
    (connection,) = server._connections.values()
    return connection.deadline


@pytest.fixture
def deadlines(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """Return a list that collects the deadlines set for connections, in seconds."""
    found: list[float | None] = []
    set_deadline = PageServer.set_deadline

    def set_and_note(server: PageServer, connection: socket.socket, seconds: float | None) -> None:
        set_deadline(server, connection, seconds)
        found.append(seconds)

    monkeypatch.setattr(PageServer, "set_deadline", set_and_note)
    return found


class TestConnectionDeadlines:
    def test_connection_without_a_request_is_closed(
        self, server: PageServer, clock: Clock, deadlines: list[float | None]
    ) -> None:
        with dial(server) as end:
            wait_until(lambda: deadlines)
            clock.now = IDLE_S
            assert end.recv(1) == b""

    def test_client_that_sends_its_request_too_slowly_is_disconnected(
        self, server: PageServer, clock: Clock, library: Library, deadlines: list[float | None]
    ) -> None:
        with dial(server) as end:
            wait_until(lambda: deadlines)
            for byte in b"GET /a H":
                end.sendall(bytes((byte,)))
                clock.now += IDLE_S / 8
            assert not end.recv(1000).startswith(b"HTTP/1.1 200")
            assert library.asked == []

    def test_each_request_has_its_own_deadline(self, server: PageServer, clock: Clock) -> None:
        with dial(server) as end:
            for _ in range(3):
                end.sendall(b"GET /a HTTP/1.1\r\n\r\n")
                heard = b""
                while not heard.endswith(b"/a\n"):
                    heard += end.recv(1000)
                wait_until(lambda: deadline(server) == clock.now + IDLE_S)
                clock.now += IDLE_S - 1
            clock.now += 1
            read_all(end)

    def test_client_that_never_closes_its_connection_is_disconnected(
        self, server: PageServer, clock: Clock
    ) -> None:
        with dial(server) as end:
            end.sendall(CLOSING_REQUEST)
            assert read_all(end).endswith(b"/a\n")
            wait_until(lambda: deadline(server) == LINGER_S)
            clock.now = LINGER_S
            wait_until(lambda: not server._connections)

    def test_sending_a_response_has_no_deadline(
        self, server: PageServer, clock: Clock, library: Library
    ) -> None:
        with dial(server) as end:
            end.sendall(b"GET /last HTTP/1.1\r\n\r\n")
            wait_until(lambda: bool(library.bodies))
            clock.now = 100 * IDLE_S
            server.service_actions()
            assert deadline(server) is None
            assert read_all(end).endswith(BIG)


class TestPeerUsers:
    def test_refused_user_gets_403(
        self, server: PageServer, users: set[int], library: Library
    ) -> None:
        users.clear()
        for request in (b"GET /a HTTP/1.1\r\n\r\n", b"DELETE / HTTP/1.1\r\n\r\n", b"\xff\n"):
            heard = exchange(server, request)
            assert heard.startswith(b"HTTP/1.1 403 ")
            assert heard.endswith(b"\r\n\r\nstretto: another user of this machine started this: "
                                  b"it answers only them\n")  # fmt: skip
        assert library.asked == []

    def test_refused_connection_ends_at_its_deadline(
        self, server: PageServer, users: set[int], clock: Clock
    ) -> None:
        users.clear()
        with dial(server) as end:
            assert b"403" in read_all(end)
            end.sendall(b"still sending")
            clock.now = REFUSED_S
            wait_until(lambda: not server._connections)

    def test_unknown_user_is_refused(
        self, server: PageServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("stretto.viewer.page_server.connected_user", lambda _: None)
        assert exchange(server, b"GET /a HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403 ")

    def test_number_of_connections_of_refused_users_is_bounded(
        self, server: PageServer, users: set[int], clock: Clock
    ) -> None:
        users.clear()
        ends = [dial(server) for _ in range(MAX_REFUSED_PER_USER + 1)]
        answers = [read_all(end) for end in ends]
        assert [answer[:12] for answer in answers].count(b"HTTP/1.1 403") == MAX_REFUSED_PER_USER
        for end in ends:
            end.close()
        wait_until(lambda: not server._connections)
        assert b"403" in exchange(server, b"")

    def test_connection_above_the_maximum_number_is_closed(self, server: PageServer) -> None:
        ends = [dial(server) for _ in range(MAX_CONNECTIONS)]
        with dial(server) as one_more:
            assert one_more.recv(1) == b""
        for end in ends:
            end.close()
        wait_until(lambda: not server._connections)
        assert exchange(server, CLOSING_REQUEST).endswith(b"/a\n")


def test_port_in_use_by_the_same_user_is_refused() -> None:
    with PageServer(0, ()) as first, pytest.raises(OSError, match="in use"):
        PageServer(first.port, ())


def test_closing_the_server_disconnects_clients(library: Library) -> None:
    server = PageServer(0, {os.geteuid()})
    thread = Thread(target=server.serve, args=(library,))
    thread.start()
    with dial(server) as end:
        wait_until(lambda: bool(server._connections))
        server.shutdown()
        thread.join(HANG_S)
        server.server_close()
        assert end.recv(1) == b""
