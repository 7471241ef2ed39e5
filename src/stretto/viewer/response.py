"""Responses of the page server: a status, header fields, and a body that may be a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.base.errors import RemoteProtocolError, TransportError
from stretto.base.portable import read_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Fields = tuple[tuple[str, str], ...]

PLAIN_TEXT = ("Content-Type", "text/plain; charset=utf-8")
BLOCK_BYTES = 256 << 10


class HttpError(RemoteProtocolError):
    """The error with which a request is answered.

    Attributes:
        status: The status code of the response.
        fields: Further header fields of the response.
    """

    def __init__(self, status: int, message: str, fields: Fields = ()) -> None:
        super().__init__(message)
        self.status = status
        self.fields = fields


class FileBody:
    """The body of a response, read from a file while it is sent.

    Args:
        fd: The file's descriptor; this object closes it.
        size: Number of bytes to send from the start; later growth of the file is ignored.
    """

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self.size = size

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)

    def blocks(self) -> Iterator[bytes]:
        """Yields the content in blocks of at most `BLOCK_BYTES`.

        Raises:
            TransportError: The file can't be read, or was truncated.
        """
        position = 0
        while position < self.size:
            try:
                block = read_at(self._fd, min(BLOCK_BYTES, self.size - position), position)
            except OSError as error:
                raise TransportError(f"can't read the file any more: {error.strerror}") from error
            if not block:
                raise TransportError("the file became shorter while it was read")
            yield block
            position += len(block)


class Response:
    """An HTTP response.

    Attributes:
        status: The status code; see `http.HTTPStatus`.
        fields: Header fields, without those that are in every response.
        body: Bytes or a file; not sent in response to HEAD.
        on_delivered: Called when the client has received the whole body. The server closes the
            connection to detect this: HTTP has no acknowledgement.
    """

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
    def of(cls, error: HttpError) -> Response:
        """Returns a response with the message of an error."""
        body = f"stretto: {error}\n".encode()
        return cls(error.status, (PLAIN_TEXT, *error.fields), body)
