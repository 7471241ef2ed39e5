from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stretto.base.errors import TransportError
from stretto.base.unix_socket import UnixSocket
from stretto.testing.fake_task_runner import FakeTaskRunner
from stretto.viewer.access import PUBLIC_UI, Access
from stretto.viewer.bridge import CLOSE_MS, Bridge
from stretto.viewer.http_connection import HttpConnection
from stretto.viewer.stream import HIGH_WATER_BYTES, LINGER_MS, RECEIVE_BYTES
from stretto.viewer.websocket_frames import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT
from tests.support.far_end import FarEnd
from tests.support.websocket_client import client_frame, handshake, server_frames

GOODBYE = client_frame(CLOSE, (1000).to_bytes(2))


class Door:
    """Leads to the service, or nowhere."""

    def __init__(self, service: FarEnd) -> None:
        self._service = service
        self.open = True
        self.refusals: list[str] = []

    def connect(self) -> UnixSocket:
        if not self.open:
            raise TransportError("nobody listens there")
        return self._service.near


@pytest.fixture
def door(service: FarEnd) -> Iterator[Door]:
    yield Door(service)
    service.near.close()


@pytest.fixture(autouse=True)
def connection(far: FarEnd, runner: FakeTaskRunner, door: Door) -> Iterator[list[str]]:
    """A page's connection, before its handshake."""
    bridge = Bridge(Access(8037, [PUBLIC_UI]), door.connect, runner, door.refusals.append)
    ends: list[str] = []
    connection = HttpConnection(far.near, runner, bridge, lambda: ends.append("end"))
    yield ends
    connection.close()
    runner.advance(CLOSE_MS)
    assert ends == ["end"]
    assert not runner.watched
    assert runner.delayed_count == 0


@pytest.fixture
def page(far: FarEnd) -> FarEnd:
    """A page that is connected."""
    far.say(handshake())
    assert far.hear().startswith(b"HTTP/1.1 101 ")
    return far


def messages(data: bytes) -> bytes:
    """The payloads of binary messages, as one stream."""
    frames = server_frames(data)
    assert {opcode for opcode, _ in frames} <= {BINARY}
    return b"".join(payload for _, payload in frames)


def refused(far: FarEnd, request: bytes, door: Door) -> int:
    far.say(request)
    head, _, body = far.hear().partition(b"\r\n\r\n")
    assert body == f"stretto: {door.refusals[-1]}\n".encode()
    return int(head.split()[1])


class TestHandshake:
    @pytest.mark.parametrize(
        ("status", "request_"),
        [
            (403, handshake(origin=None)),
            (403, handshake(origin="https://evil.example")),
            (403, handshake(host="evil.example:8037")),
            (404, handshake("/adb")),
            (404, handshake("/")),
            (404, handshake("/traced/x")),
            (426, handshake(version="7")),
        ],
    )
    def test_refused(
        self, far: FarEnd, service: FarEnd, door: Door, status: int, request_: bytes
    ) -> None:
        assert refused(far, request_, door) == status
        # Nobody bothered the service.
        service.say(b"x")
        assert service.near.recv_into(memoryview(bytearray(9))) == (1, -1)

    def test_adb_is_told_what_is_here(self, far: FarEnd, door: Door) -> None:
        refused(far, handshake("/adb"), door)
        assert "Android" in door.refusals[0]

    def test_no_service(self, far: FarEnd, door: Door) -> None:
        door.open = False
        assert refused(far, handshake(), door) == 503
        door.open = True
        far.say(handshake())
        assert far.hear().startswith(b"HTTP/1.1 101 ")

    def test_words_right_behind_it(self, far: FarEnd, service: FarEnd) -> None:
        far.say(handshake() + client_frame(BINARY, b"early"))
        assert service.hear() == b"early"


class TestBytes:
    def test_both_directions(self, page: FarEnd, service: FarEnd) -> None:
        page.say(client_frame(BINARY, b"to the "))
        page.say(client_frame(BINARY, b"ser", final=False) + client_frame(CONTINUATION, b"vice"))
        assert service.hear() == b"to the service"
        service.say(b"to the page")
        assert messages(page.hear()) == b"to the page"

    def test_a_long_answer_is_cut_and_whole(self, page: FarEnd, service: FarEnd) -> None:
        answer = bytes(range(256)) * 400
        service.say(answer)
        heard = page.hear()
        assert messages(heard) == answer
        assert all(len(payload) <= RECEIVE_BYTES for _, payload in server_frames(heard))

    def test_pings_are_answered(self, page: FarEnd) -> None:
        page.say(client_frame(PING, b"?"))
        assert server_frames(page.hear()) == [(PONG, b"?")]


class TestBackPressure:
    def test_a_page_that_does_not_read(
        self, page: FarEnd, service: FarEnd, runner: FakeTaskRunner
    ) -> None:
        sent = service.fill()
        # The kernel's buffers, and ours up to the mark.
        assert sent < 4 * HIGH_WATER_BYTES
        assert len(messages(page.hear())) == sent
        service.say(b"and on it goes")
        assert messages(page.hear()) == b"and on it goes"

    def test_a_service_that_does_not_read(
        self, page: FarEnd, service: FarEnd, runner: FakeTaskRunner
    ) -> None:
        frame = client_frame(BINARY, bytes(60_000))
        sent = 0
        while taken := page._end.send(frame[sent % len(frame) :]):
            runner.run_until_idle()
            sent += taken
            assert sent < 8 * HIGH_WATER_BYTES
        assert len(service.hear()) == sent // len(frame) * 60_000 + max(0, sent % len(frame) - 8)

    def test_pings_of_a_page_that_does_not_read(self, page: FarEnd) -> None:
        ping = client_frame(PING, bytes(125)) * 100
        sent = 0
        while taken := page._end.send(ping[sent % len(ping) :]):
            page._runner.run_until_idle()
            sent += taken
            assert sent < 8 * HIGH_WATER_BYTES
        assert page.hear()


class TestEnds:
    def test_the_page_says_goodbye(
        self, page: FarEnd, service: FarEnd, connection: list[str]
    ) -> None:
        page.say(client_frame(BINARY, b"last words") + GOODBYE)
        assert service.hear() == b"last words"
        assert service.hung_up
        assert server_frames(page.hear()) == [(CLOSE, (1000).to_bytes(2))]
        assert page.hung_up
        assert connection == ["end"]

    def test_the_page_vanishes(self, page: FarEnd, service: FarEnd, connection: list[str]) -> None:
        page.hang_up()
        assert service.hear() == b""
        assert service.hung_up
        assert connection == ["end"]

    def test_the_service_hangs_up(
        self, page: FarEnd, service: FarEnd, connection: list[str]
    ) -> None:
        service.say(b"last words")
        service.hang_up()
        said, goodbye = server_frames(page.hear())
        assert said == (BINARY, b"last words")
        assert goodbye == (CLOSE, (1001).to_bytes(2) + b"the tracing service hung up")
        assert connection == []
        page.say(GOODBYE)
        assert page.hear() == b""
        assert page.hung_up
        assert connection == ["end"]

    def test_the_service_hangs_up_and_the_page_reads_slowly(
        self, page: FarEnd, service: FarEnd, runner: FakeTaskRunner
    ) -> None:
        sent = service.fill()
        service.hang_up()
        runner.advance(10 * CLOSE_MS)
        *said, goodbye = server_frames(page.hear())
        assert sum(len(payload) for _, payload in said) == sent
        assert goodbye[0] == CLOSE
        assert not page.hung_up

    def test_a_page_that_never_answers_a_goodbye(
        self, page: FarEnd, service: FarEnd, runner: FakeTaskRunner, connection: list[str]
    ) -> None:
        service.hang_up()
        page.hear()
        runner.advance(CLOSE_MS)
        assert connection == ["end"]

    def test_a_service_that_takes_no_last_words(
        self, page: FarEnd, service: FarEnd, runner: FakeTaskRunner, connection: list[str]
    ) -> None:
        for _ in range(20):
            page.say(client_frame(BINARY, bytes(20_000)))
        page.hang_up()
        assert connection == []
        runner.advance(CLOSE_MS)
        assert connection == ["end"]

    def test_text_is_refused(
        self, page: FarEnd, service: FarEnd, runner: FakeTaskRunner, connection: list[str]
    ) -> None:
        page.say(client_frame(TEXT, b"hello"))
        ((opcode, payload),) = server_frames(page.hear())
        assert (opcode, payload[:2]) == (CLOSE, (1003).to_bytes(2))
        assert service.hear() == b""
        page.say(GOODBYE)
        service.hear()
        assert service.hung_up
        assert connection == ["end"]

    def test_a_page_that_breaks_the_rules(
        self, page: FarEnd, service: FarEnd, runner: FakeTaskRunner, connection: list[str]
    ) -> None:
        page.say(client_frame(BINARY, b"good") + b"\xff\xff" + bytes(100))
        assert service.hear() == b"good"
        ((opcode, payload),) = server_frames(page.hear())
        assert (opcode, payload[:2]) == (CLOSE, (1002).to_bytes(2))
        service.say(b"nobody listens any more")
        runner.advance(LINGER_MS)
        page.hear()
        assert page.hung_up
        service.hear()
        assert service.hung_up
        assert connection == ["end"]


def test_many_at_once(runner: FakeTaskRunner) -> None:
    before = runner.watched
    pairs = [(FarEnd(runner), FarEnd(runner)) for _ in range(20)]
    waiting = [service.near for _, service in pairs]
    connect: Callable[[], UnixSocket] = lambda: waiting.pop(0)  # noqa: E731
    bridge = Bridge(Access(8037, [PUBLIC_UI]), connect, runner)
    connections = [HttpConnection(page.near, runner, bridge, lambda: None) for page, _ in pairs]
    for page, _ in pairs:
        page.say(handshake())
        page.hear()
    for number, (page, service) in enumerate(pairs):
        page.say(client_frame(BINARY, b"%d" % number))
        service.say(b"-%d" % number)
    for number, (page, service) in enumerate(pairs):
        assert service.hear() == b"%d" % number
        assert messages(page.hear()) == b"-%d" % number
    for connection, ends in zip(connections, pairs, strict=True):
        connection.close()
        for end in ends:
            end.hang_up()
    assert runner.watched == before
