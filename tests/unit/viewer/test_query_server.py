"""The query server accepts this user's programs, and refuses pages and large bodies."""

from __future__ import annotations

import http.client
import os
from collections.abc import Iterator
from threading import Thread

import pytest

from stretto.base.errors import DecodeError
from stretto.viewer.query_server import QueryServer, QuerySite


def answers(path: str, body: bytes) -> bytes | None:
    if body == b"wrong":
        raise DecodeError("truncated")
    return path.encode() + body if path == "/echo" else None


@pytest.fixture
def connection() -> Iterator[http.client.HTTPConnection]:
    with QueryServer(0, {os.getuid()}) as server:
        thread = Thread(target=server.serve, args=[QuerySite(answers, server.port)])
        thread.start()
        made = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        try:
            yield made
        finally:
            made.close()
            server.shutdown()
            thread.join()


def send(
    connection: http.client.HTTPConnection, *request: object, **names: object
) -> tuple[int, bytes]:
    connection.request(*request, **names)  # type: ignore[arg-type]
    with connection.getresponse() as response:
        return response.status, response.read()


def test_requests_with_and_without_a_body_are_answered(
    connection: http.client.HTTPConnection,
) -> None:
    assert send(connection, "POST", "/echo", b"abc") == (200, b"/echoabc")
    assert send(connection, "GET", "/echo") == (200, b"/echo")


def test_unknown_path_and_malformed_body_are_errors(connection: http.client.HTTPConnection) -> None:
    assert send(connection, "GET", "/none")[0] == 404
    assert send(connection, "POST", "/echo", b"wrong")[0] == 400


def test_page_of_the_web_is_refused(connection: http.client.HTTPConnection) -> None:
    status, _ = send(
        connection, "POST", "/echo", b"abc", headers={"Origin": "https://ui.perfetto.dev"}
    )
    assert status == 403


def test_body_without_or_with_too_much_length_is_refused(
    connection: http.client.HTTPConnection,
) -> None:
    headers = {"Content-Length": str(1 << 40)}
    assert send(connection, "POST", "/echo", None, headers=headers)[0] == 413
