"""The site of `stretto view`: one trace, and, if wanted, the UI that shows it.

    GET /<secret>/trace.pftrace      the trace, to pages of the UI
    OPTIONS                          they may, says the answer (CORS, private network)
    GET /, /v52.0-…/…                the UI's files, if it is served here
    GET /live_reload                 which of them changed: none will, says status 204

Rules
- The file is opened once: what is served is what was named, whoever renames it.
- Its path has a secret in it. Who knows the port still can't ask for the trace.
- The UI fetches a local trace once, as a whole, and keeps it.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from typing import TYPE_CHECKING
from urllib.parse import quote

from stretto.base.errors import TransportError
from stretto.viewer.response import FileBody, HttpError, Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.viewer.access import Access, RequestFields
    from stretto.viewer.response import Fields
    from stretto.viewer.ui_files import UiFiles

PORT = 9001
"""The one that the public UI may fetch traces from."""

_SECRET_BYTES = 16
_NEEDS_ESCAPE = re.compile(r"[%?#\\\x00-\x1f]| $")
"""What a browser would understand otherwise, or throw away."""
_LIVE_RELOAD = "/live_reload"
"""The UI listens there for events, wherever it comes from 127.0.0.1."""


class TraceFile:
    """A trace on disk, open.

    Args:
        path: Of a regular file.

    Raises:
        TransportError: It can't be read, is none, or is empty.
    """

    __slots__ = ("_fd", "name", "size")

    def __init__(self, path: str) -> None:
        # A name that isn't UTF-8 is shown as well as it can be.
        self.name = os.fsencode(os.path.basename(path)).decode(errors="replace")
        try:
            # A FIFO would make us wait for its writer.
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise TransportError(f"can't read {path!r}: {error.strerror}") from error
        status = os.fstat(self._fd)
        self.size = status.st_size
        if not stat.S_ISREG(status.st_mode) or self.size == 0:
            os.close(self._fd)
            what = "is empty" if stat.S_ISREG(status.st_mode) else "is no file"
            raise TransportError(f"{path!r} {what}: give a trace")

    def fileno(self) -> int:
        """Its descriptor; it stays this object's."""
        return self._fd

    def body(self) -> FileBody:
        """The file as it is now."""
        return FileBody(os.dup(self._fd), os.fstat(self._fd).st_size)

    def close(self) -> None:
        """Close it."""
        os.close(self._fd)


class TraceSite:
    """See above.

    Args:
        trace: Stays the caller's, and open.
        access: Which pages may ask.
        ui: The UI's files, if it shall be served, too.
        on_fetched: Called whenever a page has got the whole trace.
    """

    __slots__ = ("_access", "_on_fetched", "_trace", "_ui", "path")

    def __init__(
        self,
        trace: TraceFile,
        access: Access,
        ui: UiFiles | None,
        on_fetched: Callable[[], object],
    ) -> None:
        self._trace = trace
        self._access = access
        self._ui = ui
        self._on_fetched = on_fetched
        self.path = f"/{secrets.token_urlsafe(_SECRET_BYTES)}/{trace.name}"

    def answer(self, method: str, path: str, fields: RequestFields) -> Response:
        """Returns the response to a page's request.

        Raises:
            HttpError: The page may not connect, or there is nothing at that path.
        """
        origin = self._access.check(fields)
        if secrets.compare_digest(path.encode(), self.path.encode()):
            return self._trace_response(method, fields, _cors(origin))
        response = self._ui_response(path) if self._ui is not None else None
        if response is None:
            raise HttpError(404, f"there is no {path!r} here")
        return response

    def _trace_response(self, method: str, fields: RequestFields, cors: Fields) -> Response:
        if method == "OPTIONS":
            return Response(204, cors + _preflight(fields))
        described = (("Content-Type", "application/octet-stream"), ("Cache-Control", "no-store"))
        return Response(200, described + cors, self._trace.body(), self._on_fetched)

    def _ui_response(self, path: str) -> Response | None:
        if path == _LIVE_RELOAD:
            return Response(204, ())
        try:
            return self._ui.response(path) if self._ui else None
        except TransportError as error:
            raise HttpError(500, str(error)) from error


def ui_url(ui: str, trace_url: str) -> str:
    """The address that opens a trace in the UI.

    Args:
        ui: Where the UI is: `https://ui.perfetto.dev`.
        trace_url: Where it fetches the trace.
    """
    return f"{ui.rstrip('/')}/#!/?url={quote(trace_url, safe=':/')}"


def trace_url(port: int, path: str) -> str:
    """The address of a path on this machine, as a browser takes it.

    The UI shows its end as the trace's name: what needs no escape has none, but for browsers.
    """
    return f"http://127.0.0.1:{port}" + _NEEDS_ESCAPE.sub(lambda match: quote(match[0]), path)


def _cors(origin: str | None) -> Fields:
    allowed: Fields = () if origin is None else (("Access-Control-Allow-Origin", origin),)
    return (*allowed, ("Vary", "Origin"))


def _preflight(fields: RequestFields) -> Fields:
    allowed: Fields = (("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),)
    if fields.get_all("Access-Control-Request-Private-Network") == ["true"]:
        allowed += (("Access-Control-Allow-Private-Network", "true"),)
    return allowed
