from __future__ import annotations

import pytest

from stretto.viewer.http_request import (
    MAX_FIELDS,
    MAX_HEAD_BYTES,
    HttpError,
    Request,
    RequestReader,
)


def parsed(data: bytes) -> Request:
    reader = RequestReader()
    reader.receive(data)
    request = reader.next_request()
    assert request is not None
    return request


def refused(data: bytes) -> int:
    reader = RequestReader()
    reader.receive(data)
    with pytest.raises(HttpError) as caught:
        reader.next_request()
    return caught.value.status


class TestRequests:
    def test_one(self) -> None:
        request = parsed(b"GET /a%20b?c=d HTTP/1.1\r\nHost: h:1\r\nX-Y:\t z \r\nx-y: 2\r\n\r\n")
        assert (request.method, request.path) == ("GET", "/a b")
        assert request.fields == {"host": "h:1", "x-y": "z, 2"}
        assert request.keep_alive

    def test_several_at_once_and_a_blank_line_before(self) -> None:
        reader = RequestReader()
        reader.receive(b"\r\nGET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET")
        paths = [request.path for _ in range(2) if (request := reader.next_request())]
        assert paths == ["/1", "/2"]
        assert reader.next_request() is None
        assert reader.take_rest() == b"GET"

    @pytest.mark.parametrize(
        ("line", "keep_alive"),
        [
            (b"HTTP/1.1\r\nConnection: close", False),
            (b"HTTP/1.1\r\nConnection: Upgrade, Close", False),
            (b"HTTP/1.0", False),
            (b"HTTP/1.0\r\nConnection: Keep-Alive", True),
        ],
    )
    def test_who_may_ask_again(self, line: bytes, *, keep_alive: bool) -> None:
        assert parsed(b"GET / " + line + b"\r\n\r\n").keep_alive is keep_alive

    def test_lists(self) -> None:
        request = parsed(b"GET / HTTP/1.1\r\nConnection: keep-alive, ,Upgrade\r\n\r\n")
        assert request.tokens("connection") == {"keep-alive", "upgrade"}
        assert request.tokens("upgrade") == set()

    def test_an_empty_body_is_none(self) -> None:
        assert parsed(b"POST /status HTTP/1.1\r\nContent-Length: 0\r\n\r\n").method == "POST"

    def test_a_path_stays_what_it_is(self) -> None:
        # It is compared, never followed.
        assert parsed(b"GET /a/../%2e%2e/%00 HTTP/1.1\r\n\r\n").path == "/a/../../\0"


class TestRefused:
    @pytest.mark.parametrize(
        "data",
        [
            b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",  # TLS
            b"GET / HTTP/2.0\r\n\r\n",
            b"GET  / HTTP/1.1\r\n\r\n",
            b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n",
            b"GET /\xff HTTP/1.1\r\n\r\n",
            b"G(T / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: \0\r\n\r\n",
            b"GET / HTTP/1.1\r\nnothing\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            b"GET / HTTP/1.1\r\nOrigin: a\r\nOrigin: b\r\n\r\n",
        ],
    )
    def test_what_is_no_request(self, data: bytes) -> None:
        assert refused(data) == 400

    @pytest.mark.parametrize(
        "field", [b"Content-Length: 1", b"Content-Length: +1", b"Transfer-Encoding: chunked"]
    )
    def test_bodies(self, field: bytes) -> None:
        assert refused(b"POST / HTTP/1.1\r\n" + field + b"\r\n\r\n") == 413

    def test_a_head_without_an_end(self) -> None:
        assert refused(b"GET / HTTP/1.1\r\nA: " + bytes(MAX_HEAD_BYTES)) == 431

    def test_a_head_too_long(self) -> None:
        field = b"A: " + b"x" * MAX_HEAD_BYTES
        assert refused(b"GET / HTTP/1.1\r\n" + field + b"\r\n\r\n") == 431

    def test_too_many_fields(self) -> None:
        assert refused(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * (MAX_FIELDS + 1) + b"\r\n") == 431

    def test_blank_lines_without_end_are_not_kept(self) -> None:
        reader = RequestReader()
        for _ in range(10):
            reader.receive(b"\r\n" * 10_000)
            assert reader.next_request() is None
        assert reader.take_rest() == b""
