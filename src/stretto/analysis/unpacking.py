"""Unpacks a trace file: gzip, zstd, a zip archive of one file, the first file of a tar archive.

The format is recognized by the content. Formats may be nested up to MAX_LAYERS times, such as a tar
archive that contains a trace compressed by gzip.
"""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from stretto.base.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack
    from typing import BinaryIO

MAX_LAYERS = 4
_TAR_MAGIC, _TAR_PLACE = b"ustar", 257
_PEEKED_BYTES = _TAR_PLACE + len(_TAR_MAGIC)


class _UpToDamage(io.RawIOBase):
    """A file that ends where its content is damaged.

    Args:
        file: The file.
        errors: The exceptions that reading damaged content raises.
        damaged: Called with the reason, at the first damage.
        what: The name of the content, for the reason.
    """

    def __init__(
        self,
        file: Any,
        errors: tuple[type[Exception], ...],
        damaged: Callable[[str], object],
        what: str,
    ) -> None:
        self._file = file
        self._errors = errors
        self._damaged = damaged
        self._what = what
        self._has_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._has_ended:
            return 0
        try:
            data = self._file.read1(len(buffer))
        except self._errors as error:
            self._has_ended = True
            self._damaged(f"the {self._what} is damaged: {error}")
            return 0
        buffer[: len(data)] = data
        return len(data)


def _gzip(file: io.BufferedReader, stack: ExitStack) -> tuple[BinaryIO, tuple[Any, ...]]:
    unpacked = stack.enter_context(gzip.GzipFile(fileobj=file))
    return cast("BinaryIO", unpacked), (gzip.BadGzipFile, EOFError, zlib.error)


def _zstd(file: io.BufferedReader, stack: ExitStack) -> tuple[BinaryIO, tuple[Any, ...]]:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            zstd: Any = import_module(name)
        except ModuleNotFoundError:
            continue
        return stack.enter_context(zstd.open(file)), (zstd.ZstdError, EOFError)
    raise DecodeError(
        "it is compressed by zstd, which CPython 3.14 and later can read; for older versions run "
        "`pip install backports.zstd`, or unpack the file with `zstd -d`"
    )


def _only(names: list[str], kind: str) -> str:
    if len(names) != 1:
        found = ", ".join(sorted(names)[:5]) or "none"
        raise DecodeError(f"it is a {kind} archive of {len(names)} files, not of one: {found}")
    return names[0]


def _zip(file: io.BufferedReader, stack: ExitStack) -> tuple[BinaryIO, tuple[Any, ...]]:
    seekable: BinaryIO = file
    if not file.seekable():
        spool = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        seekable = cast("BinaryIO", spool)
        shutil.copyfileobj(file, seekable)
        seekable.seek(0)
    try:
        archive = stack.enter_context(zipfile.ZipFile(seekable))
        name = _only([i.filename for i in archive.infolist() if not i.is_dir()], "zip")
        unpacked = stack.enter_context(archive.open(name))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise DecodeError(f"the zip archive can't be read: {error}") from error
    return cast("BinaryIO", unpacked), (zipfile.BadZipFile, EOFError, zlib.error)


def _tar(file: io.BufferedReader, stack: ExitStack) -> tuple[BinaryIO, tuple[Any, ...]]:
    try:
        archive = stack.enter_context(tarfile.open(fileobj=file, mode="r|"))  # noqa: SIM115
        for member in archive:
            unpacked = archive.extractfile(member)
            if unpacked is not None:
                return cast("BinaryIO", unpacked), (tarfile.ReadError, EOFError)
    except tarfile.ReadError as error:
        raise DecodeError(f"the tar archive can't be read: {error}") from error
    raise DecodeError("it is a tar archive without files")


_LAYERS = {
    b"\x1f\x8b": (_gzip, "gzip compression"),
    b"\x28\xb5\x2f\xfd": (_zstd, "zstd compression"),
    b"PK\x03\x04": (_zip, "zip archive"),
}


def _layer_of(start: bytes) -> tuple[Any, str] | None:
    for magic, layer in _LAYERS.items():
        if start.startswith(magic):
            return layer
    return (_tar, "tar archive") if start[_TAR_PLACE:].startswith(_TAR_MAGIC) else None


def unpack(
    file: io.BufferedReader, stack: ExitStack, damaged: Callable[[str], object]
) -> io.BufferedReader:
    """Return the file's content without its layers of compression and archives.

    Args:
        file: The file, at its beginning.
        stack: Closes the layers at its end.
        damaged: Called with the reason if the content of a layer is damaged; the content ends
            there. An exception that it raises is raised by the read.

    Raises:
        DecodeError: A layer can't be read.
    """
    for _ in range(MAX_LAYERS):
        layer = _layer_of(file.peek(_PEEKED_BYTES)[:_PEEKED_BYTES])
        if layer is None:
            break
        open_layer, what = layer
        content, errors = open_layer(file, stack)
        file = io.BufferedReader(_UpToDamage(content, errors, damaged, what))
    return file
