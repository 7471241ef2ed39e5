"""The server of `stretto query --serve`: requests of the trace processor's protocol by HTTP.

Rules
- The requests of other users of the machine are refused, as those of web pages: a page could
  query the trace.
- A body is read as a whole, before the request is answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from stretto.base.errors import DecodeError
from stretto.viewer.access import Access
from stretto.viewer.page_server import Handler, PageServer
from stretto.viewer.response import HttpError, Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.viewer.access import RequestFields

MAX_BODY_BYTES = 1 << 30
_BINARY = (("Content-Type", "application/x-protobuf"),)


class QuerySite:
    """Answers requests by a function.

    Args:
        answers: Returns the answer to a path and a body; None if there is no such path.
        port: The port of the server.
    """

    def __init__(self, answers: Callable[[str, bytes], bytes | None], port: int) -> None:
        self._answers = answers
        self._access = Access(port, ())

    def answer(self, method: str, path: str, fields: RequestFields) -> Response:
        """Returns the response to a request without a body.

        Raises:
            HttpError: The request is refused.
        """
        return self.post(path, fields, b"")

    def check(self, fields: RequestFields) -> None:
        """Checks who sends a request, before its body is read.

        Raises:
            HttpError: The request is refused.
        """
        self._access.check(fields)

    def post(self, path: str, fields: RequestFields, body: bytes) -> Response:
        """Returns the response to a request.

        Raises:
            HttpError: The request is refused.
        """
        self.check(fields)
        try:
            answer = self._answers(path, body)
        except DecodeError as error:
            raise HttpError(400, f"the body isn't the message of {path}: {error}") from error
        if answer is None:
            raise HttpError(404, f"there is no {path}")
        return Response(200, _BINARY, answer)


class QueryServer(PageServer):
    """A page server whose requests may have bodies. Its site is a `QuerySite`."""

    def handler(self) -> type[Handler]:
        """Returns the class that handles connections."""
        return _Handler


class _Handler(Handler):
    def do_POST(self) -> None:  # noqa: N802 – the name that http.server looks up
        """Answers a request with a body."""
        self.server.set_deadline(self.connection, None)
        self.answer(self._answer_body)

    def _answer_body(self, path: str) -> Response:
        site = cast("QuerySite", self.server.site)
        site.check(self.headers)
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or int(size) > MAX_BODY_BYTES:
            raise HttpError(413, f"a body has a length, of at most {MAX_BODY_BYTES} bytes")
        return site.post(path, self.headers, self.rfile.read(int(size)))
