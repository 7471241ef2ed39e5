"""HTTP/1.1 requests: how they are cut out of a stream of bytes.

    GET /traced?x=1 HTTP/1.1 CRLF
    Host: 127.0.0.1:8037 CRLF
    CRLF

Rules
- Strict: what two readers could understand differently (folded lines, bare line feeds, a blank
  before the colon, several hosts) is refused.
- Bounded: a head has at most 16 KiB and 100 fields. Nothing here takes a body; a request with
  one is refused, and so the connection ends.

Source: RFC 9112, sections 2 to 6.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from stretto.base.errors import RemoteProtocolError

MAX_HEAD_BYTES = 16 << 10
MAX_FIELDS = 100

_END = b"\r\n\r\n"
_REQUEST_LINE = re.compile(rb"([!#-'*+.^-z|~\w-]+) (/[!-~]*|\*) HTTP/1\.([01])")
_FIELD = re.compile(rb"([!#-'*+.^-z|~\w-]+):([^\x00-\x08\x0a-\x1f\x7f]*)")


class HttpError(RemoteProtocolError):
    """A request that gets an error for an answer.

    Attributes:
        status: Of the response.
        fields: Further fields of the response.
    """

    def __init__(self, status: int, message: str, fields: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.fields = fields


class Request:
    """One request.

    Attributes:
        method: As it came: GET, HEAD, …
        path: Decoded, without the query; `*` for the whole server.
        fields: By lower-case name; the values of one that came several times are joined by
            commas.
        keep_alive: The client may ask again on this connection.
    """

    __slots__ = ("fields", "keep_alive", "method", "path")

    def __init__(self, method: str, path: str, fields: dict[str, str], keep_alive: bool) -> None:
        self.method = method
        self.path = path
        self.fields = fields
        self.keep_alive = keep_alive

    def tokens(self, name: str) -> set[str]:
        """The words of a field that is a list, in lower case."""
        return _words(self.fields.get(name, ""))


class RequestReader:
    """Collects received bytes until they are a request.

    After an `HttpError` it can't be used any more: nobody knows where the next one begins.
    """

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def receive(self, data: bytes | memoryview) -> None:
        """Bytes came."""
        self._buffer += data

    def take_rest(self) -> bytes:
        """The bytes after the last request: another protocol's, if it asked for one."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest

    def next_request(self) -> Request | None:
        """The next request; None until its head is complete.

        Raises:
            HttpError: It's none, or one that isn't served here.
        """
        while self._buffer.startswith(b"\r\n"):
            del self._buffer[:2]  # some clients send one after a request
        end = self._buffer.find(_END, 0, MAX_HEAD_BYTES)
        if end < 0:
            if len(self._buffer) >= MAX_HEAD_BYTES:
                raise HttpError(431, f"the request's head has more than {MAX_HEAD_BYTES} bytes")
            return None
        head = bytes(self._buffer[:end])
        del self._buffer[: end + len(_END)]
        return _parse(head)


def _parse(head: bytes) -> Request:
    first, *lines = head.split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(first)
    if match is None:
        raise HttpError(400, "this is no HTTP/1.1 request")
    if len(lines) > MAX_FIELDS:
        raise HttpError(431, f"the request has more than {MAX_FIELDS} fields")
    method, target, minor = (group.decode("ascii") for group in match.groups())
    fields = _parse_fields(lines)
    _check_body(fields)
    options = _words(fields.get("connection", ""))
    keep_alive = "close" not in options if minor == "1" else "keep-alive" in options
    return Request(method, unquote(target.partition("?")[0]), fields, keep_alive)


def _parse_fields(lines: list[bytes]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in lines:
        match = _FIELD.fullmatch(line)
        if match is None:
            raise HttpError(400, "a field of the request is malformed")
        name = match[1].decode("ascii").lower()
        value = match[2].strip(b" \t").decode("latin-1")
        if name not in fields:
            fields[name] = value
        elif name in ("host", "origin", "content-length"):
            raise HttpError(400, f"the request has several fields {name!r}")
        else:
            fields[name] += f", {value}"
    return fields


def _words(value: str) -> set[str]:
    return {word for part in value.split(",") if (word := part.strip().lower())}


def _check_body(fields: dict[str, str]) -> None:
    if "transfer-encoding" in fields or fields.get("content-length", "0").strip("0"):
        raise HttpError(413, "nothing that is served here takes a body")
