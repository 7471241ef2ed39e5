"""Unpacks trace files: gzip, zstd, zip and tar archives.

The format is recognized by the content. Formats may be nested up to MAX_LAYERS times, such as a tar
archive that contains a trace compressed by gzip. `unpack` is for readers of one file,
`unpack_files` for those that read the files of an archive as one trace.
"""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from stretto.analysis import cut_zip
from stretto.base.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

MAX_LAYERS = 4
_TAR_MAGIC, _TAR_PLACE = b"ustar", 257
_PACKET, _GZIP = b"\n", b"\x1f\x8b"
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


class _Member(NamedTuple):
    """A file of an archive, or the content of a compressed file, whose name is empty."""

    name: str
    open: Callable[[ExitStack], Any]
    """Open the file; the stack closes it."""
    errors: tuple[type[Exception], ...]
    """What reading damaged content raises."""

    def opened(
        self, stack: ExitStack, damaged: Callable[[str], object], what: str
    ) -> io.BufferedReader:
        """Open the file, so that it ends where it is damaged."""
        raw = _UpToDamage(self.open(stack), self.errors, damaged, what)
        return io.BufferedReader(raw)


def _gzip(file: io.BufferedReader, _: ExitStack) -> list[_Member]:
    def unpacked(stack: ExitStack) -> gzip.GzipFile:
        return stack.enter_context(gzip.GzipFile(fileobj=file))

    return [_Member("", unpacked, (gzip.BadGzipFile, EOFError, zlib.error))]


def _zstd(file: io.BufferedReader, _: ExitStack) -> list[_Member]:
    zstd = _zstd_module()

    def unpacked(stack: ExitStack) -> Any:
        return stack.enter_context(zstd.open(file))

    return [_Member("", unpacked, (zstd.ZstdError, EOFError))]


def _zstd_module() -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ModuleNotFoundError):
            return import_module(name)
    raise DecodeError(
        "it is compressed by zstd, which CPython 3.14 and later can read; for older versions run "
        "`pip install backports.zstd`, or unpack the file with `zstd -d`"
    )


def _seekable(file: io.BufferedReader, stack: ExitStack) -> BinaryIO:
    if file.seekable():
        return file
    spool = stack.enter_context(tempfile.TemporaryFile(prefix="stretto-"))  # noqa: SIM115
    shutil.copyfileobj(file, spool)
    spool.seek(0)
    return cast("BinaryIO", spool)


def _cut_zip(file: BinaryIO) -> list[_Member]:
    """Return the files of a zip archive whose end is missing."""
    found = cut_zip.parts(file)

    def open_part(part: cut_zip.Part, _: ExitStack) -> cut_zip.Content:
        return cut_zip.Content(file, part, is_last=part is found[-1])

    return [_Member(part.name, partial(open_part, part), (EOFError, zlib.error)) for part in found]


def _zip(file: io.BufferedReader, stack: ExitStack) -> list[_Member]:
    seekable = _seekable(file, stack)
    try:
        archive = stack.enter_context(zipfile.ZipFile(seekable))
    except zipfile.BadZipFile:
        return _cut_zip(seekable)
    except (NotImplementedError, RuntimeError) as error:
        raise DecodeError(f"the zip archive can't be read: {error}") from error

    def open_member(info: zipfile.ZipInfo, own: ExitStack) -> Any:
        try:
            return own.enter_context(archive.open(info))
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise DecodeError(f"the zip archive can't be read: {error}") from error

    errors = (zipfile.BadZipFile, EOFError, zlib.error)
    return [
        _Member(info.filename, partial(open_member, info), errors)
        for info in archive.infolist()
        if not info.is_dir()
    ]


def _tar(file: io.BufferedReader, stack: ExitStack) -> list[_Member]:
    found = []
    try:
        archive = stack.enter_context(
            tarfile.open(fileobj=_seekable(file, stack), mode="r:")  # noqa: SIM115
        )
        while (info := archive.next()) is not None:
            found += [info] if info.isfile() else []
    except tarfile.ReadError as error:
        if not found:  # Else the last file is cut off, or what follows it.
            raise DecodeError(f"the tar archive can't be read: {error}") from error

    def open_member(info: tarfile.TarInfo, own: ExitStack) -> Any:
        content = archive.extractfile(info)
        assert content is not None
        return own.enter_context(content)

    errors = (tarfile.ReadError, EOFError)
    return [_Member(info.name, partial(open_member, info), errors) for info in found]


_LAYERS = {
    _GZIP: (_gzip, "gzip compression"),
    b"\x28\xb5\x2f\xfd": (_zstd, "zstd compression"),
    b"PK\x03\x04": (_zip, "zip archive"),
}


def _layer_of(start: bytes) -> tuple[Any, str] | None:
    for magic, layer in _LAYERS.items():
        if start.startswith(magic):
            return layer
    return (_tar, "tar archive") if start[_TAR_PLACE:].startswith(_TAR_MAGIC) else None


def _members(file: io.BufferedReader, stack: ExitStack) -> tuple[list[_Member], str] | None:
    """Return the content of a layer, and its name; None if the file has no layer."""
    layer = _layer_of(file.peek(_PEEKED_BYTES)[:_PEEKED_BYTES])
    if layer is None:
        return None
    open_layer, what = layer
    members = open_layer(file, stack)
    if not members:
        raise DecodeError(f"it is a {what} without files")
    return members, what


def unpack(
    file: io.BufferedReader, stack: ExitStack, damaged: Callable[[str], object]
) -> io.BufferedReader:
    """Return the file's content without its layers of compression and archives of one file.

    Args:
        file: The file, at its beginning.
        stack: Closes the layers at its end.
        damaged: Called with the reason if the content of a layer is damaged; the content ends
            there. An exception that it raises is raised by the read.

    Raises:
        DecodeError: A layer can't be read, or it is an archive of several files.
    """
    for _ in range(MAX_LAYERS):
        layer = _members(file, stack)
        if layer is None:
            break
        members, what = layer
        if len(members) > 1:
            found = ", ".join(sorted(member.name for member in members)[:5])
            raise DecodeError(f"it is a {what} of {len(members)} files, not of one: {found}")
        file = members[0].opened(stack, damaged, what)
    return file


def unpack_files(
    file: io.BufferedReader, damaged: Callable[[str], object], depth: int = MAX_LAYERS
) -> Iterator[tuple[str, io.BufferedReader]]:
    """Give the names and contents of all files of a file, without their layers.

    The name of a file that is in no archive is empty. Each content is open until the next one is
    asked for. The order is Perfetto's: packets, compressed files, others; then by name.

    Args:
        file: The file, at its beginning.
        damaged: As for `unpack`.
        depth: The maximum number of layers.

    Raises:
        DecodeError: A layer can't be read.
    """
    with ExitStack() as stack:
        layer = _members(file, stack) if depth else None
        if layer is None:
            yield "", file
            return
        members, what = layer
        for member in _in_order(members, what):
            with ExitStack() as own:
                content = member.opened(own, damaged, what)
                for name, inner in unpack_files(content, damaged, depth - 1):
                    yield "/".join(filter(None, (member.name, name))), inner


def _in_order(members: list[_Member], what: str) -> list[_Member]:
    def place(member: _Member) -> tuple[int, str]:
        with ExitStack() as own:
            start = member.opened(own, lambda _: None, what).peek(2)
        kind = 0 if start.startswith(_PACKET) else 1 if start.startswith(_GZIP) else 2
        return kind, member.name

    return sorted(members, key=place) if len(members) > 1 else members
