"""Where the trace goes: a file that is opened before the service is asked for anything."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from stretto.base.errors import CommandError, TransportError
from stretto.service.output.output_file import OutputFile


class TraceOutput:
    """A file, or standard output.

    Args:
        path: of the file; `-` is standard output.
        no_clobber: refuse a file that exists.

    Attributes:
        path: absolute, so that it stays right when the working directory changes; or `-`.
        name: for messages.
        error: why writing has failed, else empty. Whole packets are in the file.

    Raises:
        CommandError: it can't be opened.
    """

    def __init__(self, path: str, *, no_clobber: bool = False) -> None:
        self.path = path if path == "-" else os.path.abspath(path)
        self.name = "stdout" if path == "-" else path
        self.error = ""
        try:
            self.fd = os.dup(1) if path == "-" else _open(self.path, no_clobber=no_clobber)
        except OSError as error:
            hint = ": leave --no-clobber out, or remove it" * isinstance(error, FileExistsError)
            text = f"trace: can't write to {path}: {error.strerror}{hint}."
            raise CommandError(text) from error
        self._file = OutputFile(os.dup(self.fd))

    def write(self, trace: bytes) -> None:
        """Append framed packets; what fails is kept in `error`, and the rest dropped."""
        if self.error:
            return
        try:
            self._file.write(trace)
        except TransportError as error:
            self.error = str(error)

    @property
    def size(self) -> int:
        """Bytes in it, whoever wrote them; of a pipe those that went through here."""
        status = os.fstat(self.fd)
        return status.st_size if stat.S_ISREG(status.st_mode) else self._file.bytes_written

    def remove_if_empty(self) -> None:
        """Leave no empty file behind; harmless if there is another one at the path by now."""
        if self.path == "-" or self.fd < 0:
            return
        with suppress(OSError):
            status = os.fstat(self.fd)
            empty = stat.S_ISREG(status.st_mode) and not status.st_size
            if empty and os.path.samestat(os.lstat(self.path), status):
                os.unlink(self.path)

    def close(self) -> None:
        """Close it; harmless twice."""
        self._file.close()
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def _open(path: str, *, no_clobber: bool) -> int:
    """Open the file; a FIFO only for writing, once somebody has opened it for reading.

    A descriptor that can also read a FIFO keeps it alive: when the reader ends, writes to it
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
