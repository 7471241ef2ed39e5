from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stretto.testing.fake_task_runner import FakeTaskRunner
from stretto.viewer.http_connection import BLOCK_BYTES, IDLE_MS, HttpConnection, Upgrade
from stretto.viewer.http_request import HttpError, Request
from stretto.viewer.http_response import FileBody, Response
from stretto.viewer.stream import LINGER_MS, Stream
from tests.support.far_end import FarEnd

BIG = bytes(range(256)) * (10 * BLOCK_BYTES // 256) + b"end"


class Taken:
    """What a connection is after an upgrade."""

    def __init__(self, on_end: Callable[[], object]) -> None:
        self.received = b""
        self.on_end = on_end

    def on_bytes(self, data: memoryview) -> None:
        self.received += data

    def on_drained(self) -> None: ...


class Library:
    """A site: small texts, a big file, an upgrade, and things that fail."""

    def __init__(self, folder: Path) -> None:
        self._big = folder / "big"
        self._big.write_bytes(BIG)
        self.asked: list[str] = []
        self.delivered = 0
        self.taken: Taken | None = None
        self.bodies: list[FileBody] = []

    def answer(self, request: Request) -> Response | Upgrade:
        self.asked.append(request.path)
        if request.path in ("/big", "/last"):
            body = FileBody(os.open(self._big, os.O_RDONLY), len(BIG))
            self.bodies.append(body)
            return Response(200, (), body, self._on_delivered if request.path == "/last" else None)
        if request.path == "/upgrade":
            return Upgrade((("Upgrade", "shout"),), self._take_over)
        if request.path == "/none":
            raise HttpError(404, "there is none", (("X-Why", "because"),))
        return Response.message(200, request.path)

    def shrink(self) -> None:
        os.truncate(self._big, BLOCK_BYTES)

    def _on_delivered(self) -> None:
        self.delivered += 1

    def _take_over(self, stream: Stream, rest: bytes, on_end: Callable[[], object]) -> None:
        self.taken = Taken(on_end)
        self.taken.received += rest
        stream.owner = self.taken


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


class Ends:
    count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def ends() -> Ends:
    return Ends()


@pytest.fixture(autouse=True)
def connection(
    far: FarEnd, runner: FakeTaskRunner, library: Library, ends: Ends
) -> Iterator[HttpConnection]:
    connection = HttpConnection(far.near, runner, library, ends)
    yield connection
    connection.close()
    runner.run_until_idle()
    assert ends.count == 1
    assert not runner.watched
    assert runner.delayed_count == 0
    assert all(body._fd == -1 for body in library.bodies)


def get(path: str, *fields: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *fields, "", ""]).encode()


def split(data: bytes) -> tuple[bytes, bytes]:
    head, _, body = data.partition(b"\r\n\r\n")
    return head, body


class TestConversation:
    def test_one_after_the_other(self, far: FarEnd) -> None:
        for path in ("/a", "/b"):
            far.say(get(path))
            head, body = split(far.hear())
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"Content-Length: 3\r\n" in head
            assert b"X-Content-Type-Options: nosniff\r\n" in head
            assert head.endswith(b"Connection: keep-alive")
            assert body == path.encode() + b"\n"

    def test_several_at_once_in_their_order(self, far: FarEnd, library: Library) -> None:
        far.say(get("/a") + get("/big") + get("/none") + get("/b"))
        heard = far.hear()
        assert library.asked == ["/a", "/big", "/none", "/b"]
        assert heard.count(b"HTTP/1.1 ") == 4
        assert BIG in heard
        assert heard.endswith(b"\r\n\r\n/b\n")

    def test_an_error_of_the_site_has_its_words_and_fields(self, far: FarEnd) -> None:
        far.say(get("/none"))
        head, body = split(far.hear())
        assert head.startswith(b"HTTP/1.1 404 Not Found\r\n")
        assert b"X-Why: because\r\n" in head
        assert body == b"stretto: there is none\n"

    def test_head_is_answered_without_a_body(self, far: FarEnd, library: Library) -> None:
        for path in ("/a", "/big", "/none"):
            far.say(get(path, method="HEAD"))
            head, body = split(far.hear())
            assert b"Content-Length: 0" not in head
            assert body == b""

    def test_what_is_no_request_ends_it(self, far: FarEnd, library: Library, ends: Ends) -> None:
        far.say(b"nonsense\r\n\r\n" + get("/a"))
        head, _ = split(far.hear())
        assert head.startswith(b"HTTP/1.1 400 ")
        assert head.endswith(b"Connection: close")
        far.say(get("/a"))
        assert library.asked == []
        far.hang_up()
        assert ends.count == 1

    def test_a_client_that_wants_no_more(self, far: FarEnd, runner: FakeTaskRunner) -> None:
        far.say(get("/a", "Connection: close") + get("/b"))
        head, body = split(far.hear())
        assert head.endswith(b"Connection: close")
        assert body == b"/a\n"
        runner.advance(LINGER_MS)
        assert far.hear() == b""
        assert far.hung_up


class TestFiles:
    def test_a_file_goes_no_faster_than_it_is_read(
        self, far: FarEnd, library: Library, runner: FakeTaskRunner
    ) -> None:
        far.say(get("/big") + get("/a"))
        runner.run_until_idle()
        (body,) = library.bodies
        assert 0 < body.rest < len(BIG)
        assert library.asked == ["/big"]
        assert BIG in far.hear()
        assert library.asked == ["/big", "/a"]

    def test_a_client_that_goes_in_the_middle(
        self, far: FarEnd, library: Library, ends: Ends
    ) -> None:
        far.say(get("/last"))
        far.hang_up()
        assert ends.count == 1
        assert library.delivered == 0

    def test_the_last_response_is_delivered_when_the_client_hangs_up(
        self, far: FarEnd, library: Library, runner: FakeTaskRunner
    ) -> None:
        far.say(get("/last"))
        head, body = split(far.hear())
        assert head.endswith(b"Connection: close")
        assert body == BIG
        assert library.delivered == 0
        far.hang_up()
        assert library.delivered == 1

    def test_asking_for_its_head_delivers_nothing(
        self, far: FarEnd, library: Library, runner: FakeTaskRunner
    ) -> None:
        far.say(get("/last", method="HEAD"))
        assert b"200 OK" in far.hear()
        far.hang_up()
        assert library.delivered == 0

    def test_a_file_that_shrinks_breaks_the_connection(
        self, far: FarEnd, library: Library, ends: Ends
    ) -> None:
        library.shrink()
        far.say(get("/last"))
        _, body = split(far.hear())
        assert body == BIG[: len(body)]
        assert len(body) <= BLOCK_BYTES
        assert far.hung_up
        assert library.delivered == 0


class TestUpgrade:
    def test_the_stream_is_handed_over_with_what_came(
        self, far: FarEnd, library: Library, ends: Ends
    ) -> None:
        far.say(get("/upgrade") + b"first ")
        head, _ = split(far.hear())
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: shout\r\n")
        assert head.endswith(b"Connection: Upgrade")
        far.say(b"second")
        assert library.taken is not None
        assert library.taken.received == b"first second"
        assert ends.count == 0

    def test_it_is_not_idle(self, far: FarEnd, runner: FakeTaskRunner) -> None:
        far.say(get("/upgrade"))
        runner.advance(10 * IDLE_MS)
        far.hear()
        assert not far.hung_up


class TestHostileClients:
    def test_a_request_that_never_ends(self, far: FarEnd, runner: FakeTaskRunner) -> None:
        for byte in get("/a")[:8]:
            far.say(bytes((byte,)))
            runner.advance(IDLE_MS / 8)
        runner.advance(LINGER_MS)
        assert far.hear() == b""
        assert far.hung_up

    def test_an_idle_connection(self, far: FarEnd, runner: FakeTaskRunner) -> None:
        far.say(get("/a"))
        runner.advance(IDLE_MS - 1)
        assert far.hear().endswith(b"/a\n")
        far.say(get("/b"))
        runner.advance(IDLE_MS - 1)
        assert far.hear().endswith(b"/b\n")
        runner.advance(1 + LINGER_MS)
        far.hear()
        assert far.hung_up

    def test_many_requests_and_no_reading(self, far: FarEnd, library: Library) -> None:
        # The answers are longer than the questions; they wait, and so do further questions.
        request = get("/" + "x" * 1000)
        questions = 0
        while far._end.send(request * 64) == 64 * len(request):
            far._runner.run_until_idle()
            questions += 64
            assert questions < 10_000
        asked = len(library.asked)
        assert asked < questions
        assert far.hear().count(b"HTTP/1.1 200") >= questions
