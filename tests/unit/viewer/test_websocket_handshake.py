from __future__ import annotations

import pytest

from stretto.viewer.http_request import HttpError, Request, RequestReader
from stretto.viewer.websocket_handshake import accept_handshake
from tests.support.websocket_client import ACCEPT, KEY, handshake


def parsed(data: bytes) -> Request:
    reader = RequestReader()
    reader.receive(data)
    request = reader.next_request()
    assert request is not None
    return request


def refused(data: bytes) -> HttpError:
    with pytest.raises(HttpError) as caught:
        accept_handshake(parsed(data))
    return caught.value


def test_a_browsers_request_is_accepted_and_no_extension_of_it() -> None:
    fields = dict(accept_handshake(parsed(handshake())))
    assert fields == {"Upgrade": "websocket", "Sec-WebSocket-Accept": ACCEPT}


def test_a_plain_request_is_told_what_is_here() -> None:
    error = refused(b"GET /traced HTTP/1.1\r\nHost: x\r\n\r\n")
    assert error.status == 426
    assert dict(error.fields)["Upgrade"] == "websocket"


def test_another_version_is_told_ours() -> None:
    error = refused(handshake(version="8"))
    assert error.status == 426
    assert dict(error.fields)["Sec-WebSocket-Version"] == "13"


def test_another_method() -> None:
    assert refused(handshake().replace(b"GET", b"PUT", 1)).status == 405


@pytest.mark.parametrize("key", ["", "x", "AAAA", KEY.rstrip("="), KEY.replace("Q", "\xe9")])
def test_a_key_that_is_none(key: str) -> None:
    data = handshake(key="@").replace(b"@", key.encode("latin-1"))
    assert refused(data).status == 400
