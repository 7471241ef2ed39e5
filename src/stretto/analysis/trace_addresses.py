"""Finds the traces that paths, folders, patterns and URIs name.

A URI such as `s3://bucket/*.pftrace` needs fsspec, and the file system's own package.
"""

from __future__ import annotations

import glob
import os
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    Address = str | bytes
    """A path or URI of a trace, or its bytes."""

MISSING = "URIs of traces need {}: `pip install fsspec` installs it"


class Trace(NamedTuple):
    """A trace of a batch.

    Attributes:
        address: A path, the bytes of the trace, or a URI that fsspec opens.
        metadata: Columns that are added to each row of the trace's results, by name.
    """

    address: Address
    metadata: dict[str, Any] = {}  # noqa: RUF012  # it is never changed


def find_traces(
    traces: object, on_missing: Callable[[str, FileNotFoundError], object] | None = None
) -> list[Trace]:
    """Return the traces that are named.

    Args:
        traces: A path, a folder, a pattern of `glob`, a URI, the bytes of a trace, an open file, a
            `Trace`, or an iterable of these.
        on_missing: Called with what names no trace, and the error; None raises it.

    Raises:
        FileNotFoundError: A folder, a pattern or a URI names no trace.
        ModuleNotFoundError: fsspec isn't installed.
    """
    if isinstance(traces, Trace):
        return [traces]
    if isinstance(traces, bytes | bytearray | memoryview):
        return [Trace(bytes(traces))]
    if hasattr(traces, "read"):
        return find_traces(traces.read())
    if isinstance(traces, str | os.PathLike):
        text = os.fspath(traces)
        found = _uris(text) if is_uri(text) else paths_of(text)
        if not found:
            error = FileNotFoundError(f"there is no trace {text!r}")
            if on_missing is None:
                raise error
            on_missing(text, error)
        return [Trace(address) for address in found]
    several: Iterable[object] = traces  # type: ignore[assignment]
    return [trace for each in several for trace in find_traces(each, on_missing)]


def is_uri(text: str) -> bool:
    """Whether the text begins with a scheme, as `s3://`."""
    return "://" in text


def paths_of(text: str) -> list[str]:
    """Return the files that a path, a folder or a pattern of `glob` names.

    A path is returned if it exists.
    """
    path = Path(text)
    if path.is_dir():
        return sorted(str(file) for file in path.iterdir() if file.is_file())
    return [text] if path.exists() else sorted(glob.glob(text, recursive=True))


def _fsspec() -> Any:
    try:
        return import_module("fsspec")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(MISSING.format(error.name), name=error.name) from error


def _uris(text: str) -> list[str]:
    files, _, paths = _fsspec().get_fs_token_paths(text)
    return [files.unstrip_protocol(path) for path in sorted(paths)]


@contextmanager
def opened(address: Address) -> Iterator[str | bytes | BinaryIO]:
    """Open a trace for the importer: paths and bytes are as they are, URIs become files."""
    if isinstance(address, bytes) or not is_uri(address):
        yield address
        return
    with _fsspec().open(address, "rb") as file:
        yield file
