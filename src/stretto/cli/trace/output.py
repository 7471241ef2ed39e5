"""The output file of the trace, opened before the first request to the service."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, TransportError
from stretto.base.trace_name import name_complaint
from stretto.recorder.host.contents import Contents
from stretto.service.output.output_file import OutputFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.recorder.host.packet_file import PacketFile


class TraceOutput:
    """A file, or standard output.

    Args:
        path: the path of the file; `-` is standard output.
        no_clobber: refuse an existing file.

    Attributes:
        path: the absolute path, which remains valid if the working directory changes; or `-`.
        name: the name for messages.
        error: why writing has failed, else empty. Even then the file has only whole packets.
        watch: called with the packets that are written; None at first.

    Raises:
        CommandError: the file can't be opened.
    """

    def __init__(self, path: str, *, no_clobber: bool = False) -> None:
        if complaint := name_complaint(path):
            raise CommandError(f"trace: {path}: {complaint}.")
        self.path = path if path == "-" else os.path.abspath(path)
        self.name = "stdout" if path == "-" else path
        self.error = ""
        self.watch: Callable[[bytes], object] | None = None
        try:
            self.fd = os.dup(1) if path == "-" else _open(self.path, no_clobber=no_clobber)
        except OSError as error:
            hint = ": leave --no-clobber out, or remove it" * isinstance(error, FileExistsError)
            text = f"trace: can't write to {path}: {error.strerror}{hint}."
            raise CommandError(text) from error
        self._file = OutputFile(os.dup(self.fd))

    def write(self, trace: bytes) -> None:
        """Append framed packets. An error is stored in `error`, and later packets are dropped."""
        if self.error:
            return
        if self.watch is not None:
            self.watch(trace)
        try:
            self._file.write(trace)
        except TransportError as error:
            self.error = str(error)

    @property
    def size(self) -> int:
        """The size of the file, including bytes of other writers; for a pipe, the bytes written."""
        status = os.fstat(self.fd)
        return status.st_size if stat.S_ISREG(status.st_mode) else self._file.bytes_written

    def has_track_events(self) -> bool:
        """Whether the file has track events; True if it can't be read again."""
        if not stat.S_ISREG(os.fstat(self.fd).st_mode):
            return True
        contents = Contents()
        contents.add_file(self.fd)
        return bool(contents.events)

    def read_again(self, packets: PacketFile) -> None:
        """Pass the packets of the file, if it can be read again."""
        with suppress(OSError):  # Standard output may be open for writing only.
            if stat.S_ISREG(os.fstat(self.fd).st_mode):
                packets.add_file(self.fd)

    def remove_if_empty(self) -> None:
        """Remove the file if it is empty, unless the path has been replaced by another file."""
        if self.path == "-" or self.fd < 0:
            return
        with suppress(OSError):
            status = os.fstat(self.fd)
            empty = stat.S_ISREG(status.st_mode) and not status.st_size
            if empty and os.path.samestat(os.lstat(self.path), status):
                os.unlink(self.path)

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def _open(path: str, *, no_clobber: bool) -> int:
    """Open the file; a FIFO is opened only for writing, once a reader has opened it.

    A descriptor that can also read a FIFO counts as a reader: when the real reader ends, writes
    would wait for ever instead of failing.
    """
    if not no_clobber and _is_fifo(path):
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    return os.open(path, flags | (os.O_EXCL if no_clobber else os.O_TRUNC), 0o600)


def _is_fifo(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False
