"""What the server answers: a status, fields, and a body that may be a file."""

from __future__ import annotations

import os
from http import HTTPStatus
from typing import TYPE_CHECKING

from stretto.base.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.viewer.http_request import HttpError

Fields = tuple[tuple[str, str], ...]

PLAIN_TEXT = ("Content-Type", "text/plain; charset=utf-8")


class FileBody:
    """A file as a body: read while it is sent.

    Args:
        fd: Belongs to this object from now on.
        size: Bytes from the start. A file that has grown since isn't sent further; one that has
            shrunk breaks the connection.
    """

    __slots__ = ("_fd", "_position", "size")

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self._position = 0
        self.size = size

    @property
    def rest(self) -> int:
        """Bytes not read yet."""
        return self.size - self._position

    def close(self) -> None:
        """Close the file. Harmless if it is closed."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def read(self, limit: int) -> bytes:
        """The next bytes, at most `limit`; nothing at the end.

        Raises:
            TransportError: The file is shorter than it was, or can't be read.
        """
        wanted = min(limit, self.rest)
        if wanted == 0:
            return b""
        try:
            data = os.pread(self._fd, wanted, self._position)
        except OSError as error:
            raise TransportError(f"can't read the file any more: {error.strerror}") from error
        if not data:
            raise TransportError("the file became shorter while it was read")
        self._position += len(data)
        return data


class Response:
    """One answer.

    Attributes:
        status: See `http.HTTPStatus`.
        fields: Without Content-Length, Connection and those of every response.
        body: Bytes or a file; a response to HEAD is sent without it.
        on_delivered: Called once the client has all of it; the connection ends with such a
            response, for nothing else tells.
    """

    __slots__ = ("body", "fields", "on_delivered", "status")

    def __init__(
        self,
        status: int,
        fields: Fields = (PLAIN_TEXT,),
        body: bytes | FileBody = b"",
        on_delivered: Callable[[], object] | None = None,
    ) -> None:
        self.status = status
        self.fields = fields
        self.body = body
        self.on_delivered = on_delivered

    @classmethod
    def message(cls, status: int, text: str, fields: Fields = ()) -> Response:
        """An answer in words, for whoever looks."""
        return cls(status, (PLAIN_TEXT, *fields), f"{text}\n".encode())

    @classmethod
    def of(cls, error: HttpError) -> Response:
        """What an error says."""
        return cls.message(error.status, f"stretto: {error}", error.fields)

    def head(self, *, keep_alive: bool) -> bytes:
        """Status line and fields."""
        size = len(self.body) if isinstance(self.body, bytes) else self.body.size
        length = () if self.status == HTTPStatus.NO_CONTENT else (("Content-Length", str(size)),)
        connection = ("Connection", "keep-alive" if keep_alive else "close")
        nosniff = ("X-Content-Type-Options", "nosniff")
        return encode_head(self.status, (*self.fields, *length, nosniff, connection))


def encode_head(status: int, fields: Fields) -> bytes:
    """Status line and fields as they go over the wire."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines += [f"{name}: {value}" for name, value in fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
