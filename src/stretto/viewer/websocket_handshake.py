"""How an HTTP request becomes a WebSocket.

    GET /traced HTTP/1.1                     HTTP/1.1 101 Switching Protocols
    Upgrade: websocket                       Upgrade: websocket
    Connection: Upgrade              -->     Connection: Upgrade
    Sec-WebSocket-Version: 13                Sec-WebSocket-Accept: <of the key>
    Sec-WebSocket-Key: <16 random bytes>

Subprotocols and extensions that a client offers aren't accepted: it goes on without.

Source: RFC 6455, section 4.2.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING

from stretto.viewer.http_request import HttpError

if TYPE_CHECKING:
    from stretto.viewer.http_request import Request
    from stretto.viewer.http_response import Fields

VERSION = "13"

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES = 16


def accept_handshake(request: Request) -> Fields:
    """The fields of the response 101, but for Connection.

    Raises:
        HttpError: The request asks for no WebSocket, or wrongly.
    """
    asks = "websocket" in request.tokens("upgrade") and "upgrade" in request.tokens("connection")
    if not asks:
        raise HttpError(426, "a WebSocket is served here, nothing else", _upgrade())
    if request.method != "GET":
        raise HttpError(405, "a WebSocket begins with GET", (("Allow", "GET"),))
    if request.fields.get("sec-websocket-version") != VERSION:
        wanted = ("Sec-WebSocket-Version", VERSION)
        raise HttpError(426, f"this is version {VERSION} of the protocol", (*_upgrade(), wanted))
    key = request.fields.get("sec-websocket-key", "")
    _check_key(key)
    digest = hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()
    return (*_upgrade(), ("Sec-WebSocket-Accept", base64.b64encode(digest).decode()))


def _upgrade() -> Fields:
    return (("Upgrade", "websocket"),)


def _check_key(key: str) -> None:
    try:
        if len(base64.b64decode(key.encode("latin-1"), validate=True)) == _KEY_BYTES:
            return
    except binascii.Error:
        pass
    raise HttpError(400, "Sec-WebSocket-Key is not 16 bytes in base64")
