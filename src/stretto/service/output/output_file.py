"""The output file of a session.

Rules: an existing file is not overwritten, a symbolic link is not followed, and a new file is
readable only by its owner. If a write fails (disk full, quota, closed pipe), the lost bytes are
counted, a regular file is truncated to whole packets, and the file is closed: the trace ends
early, but is valid.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
from _thread import allocate_lock

from stretto.base.errors import SessionError, TransportError
from stretto.service.output.output_pipe import OutputPipe
from stretto.service.output.packet_encoder import whole_packets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

READER_STOPPED = "its reader doesn't read"

_PIPE_TIMEOUT_MS = 10_000
_NO_ROOM = frozenset(os.strerror(each) for each in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_STEP_BYTES = 1 << 20


def create_output_file(path: str) -> int:
    """Create `path` for a trace and return its descriptor.

    Raises:
        SessionError: The file exists or can't be created; the message contains the reason.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileExistsError:
        raise SessionError(
            f"output_path {path!r} exists already: remove it or choose another name."
        ) from None
    except (OSError, ValueError) as error:
        raise SessionError(
            f"output_path {path!r} can't be created: {_reason(error)}; "
            "choose a folder that exists and is writable."
        ) from error


class FileError(TransportError):
    """The output file failed before the trace was complete.

    Attributes:
        lost: Number of trace bytes that were not written.
    """

    def __init__(self, reason: str, written: int, lost: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.written = written
        self.lost = lost

    def __str__(self) -> str:
        advice = "make room and record again" if self.reason in _NO_ROOM else "record again"
        return (
            f"The trace file can't be written: {self.reason}. {self.written} bytes are in it, "
            f"{self.lost} that waited to be written are lost, and all that came later: {advice}."
        )


class OutputFile:
    """Writes framed packets until the file is full, broken or closed.

    Args:
        fd: An open file, pipe, socket or device; owned by this object.
        interruptible: Whether `interrupt` can end `go_on` while it waits for the reader of a pipe.

    Attributes:
        regular: Whether this is a regular file; else a pipe, socket or device.
        bytes_written: Number of written bytes: whole packets, unless the file is broken.
        progress: Grows with each byte written. Any thread may read it.
    """

    def __init__(self, fd: int, *, interruptible: bool = False) -> None:
        self._fd = fd
        self._fd_lock = allocate_lock()
        self.regular = stat.S_ISREG(os.fstat(fd).st_mode)
        self._start = _start_of(fd) if self.regular else 0
        self._pipe = OutputPipe(fd) if interruptible and not self.regular else None
        self._piece = b""
        self._done = 0
        self._framed = True
        self.bytes_written = 0
        self.progress = 0

    @property
    def closed(self) -> bool:
        return self._fd < 0

    def write(self, trace: bytes) -> None:
        """Append framed packets; blocks until they are written.

        Raises:
            TransportError: The write failed. The file is closed, and contains only whole packets.
        """
        self.begin(trace)
        while not self.go_on():
            pass

    def begin(self, piece: bytes, *, framed: bool = True) -> None:
        """Set the data that `go_on` writes next; all previous data must have been written.

        Args:
            piece: Not empty.
            framed: Whether `piece` consists of framed packets, so that it may be truncated after
                any of them.
        """
        self._piece, self._done, self._framed = piece, 0, framed

    def go_on(self) -> bool:
        """Write more of the current data; return whether all of it is written.

        Raises:
            TransportError: The write failed, as in `write`.
        """
        try:
            rest = memoryview(self._piece)[self._done : self._done + _STEP_BYTES]
            written = self._pipe.write(rest) if self._pipe else _write(self._fd, rest)
        except OSError as error:
            raise self.give_up(_reason(error)) from error
        self._done += written
        self.progress += written
        if self._done < len(self._piece):
            return False
        self.bytes_written += len(self._piece)
        self._piece, self._done = b"", 0
        return True

    def give_up(self, reason: str) -> FileError:
        """Truncate a regular file to whole packets, close it, and return the error."""
        kept = whole_packets(self._piece, self._done + 1) if self._framed else self._done
        lost = len(self._piece) - kept
        if self.regular and self._done > kept:
            try:
                end = os.lseek(self._fd, 0, os.SEEK_CUR)
                os.ftruncate(self._fd, end - (self._done - kept))
            except OSError:
                kept = self._done  # The file ends with an incomplete packet: readers stop there.
        self.bytes_written += kept if self.regular else self._done
        self._piece, self._done = b"", 0
        self.close()
        return FileError(reason, self.bytes_written, lost)

    def interrupt(self) -> None:
        """Make `go_on` return on the writing thread. No effect on a regular file."""
        with self._fd_lock:
            if self._pipe and self._fd >= 0:
                self._pipe.interrupt()

    def sync(self) -> None:
        """Flush a regular file to the disk.

        Raises:
            TransportError: The flush failed; the file was closed.
        """
        if self.closed or not self.regular:
            return
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            self.close()
            raise TransportError(
                f"The trace file may be incomplete: {_reason(error)}; record again elsewhere."
            ) from error

    def close(self) -> None:
        """Close the descriptor. May be called again."""
        with self._fd_lock:
            fd, self._fd = self._fd, -1
            if self._pipe and fd >= 0:
                self._pipe.close()
        if fd >= 0:
            try:
                os.close(fd)
            except OSError:
                pass  # The descriptor is closed in spite of the error; sync() reports lost data.

    def copy(self, size: int) -> Iterator[bytes]:
        """Yield the written bytes of the file in pieces, on any thread.

        Raises:
            OSError: The file is not a regular file, or is closed.
        """
        with self._fd_lock:
            if not self.regular or self._fd < 0:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            pieces = _read_file(os.dup(self._fd), self._start + size)
            next(pieces)
            return pieces


def _start_of(fd: int) -> int:
    """Return the offset at which writing begins in a regular file."""
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND:
        return os.fstat(fd).st_size
    return os.lseek(fd, 0, os.SEEK_CUR)


def _write(fd: int, data: memoryview) -> int:
    try:
        return os.write(fd, data)
    except BlockingIOError:  # Another process has made the pipe non-blocking.
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        if not poll.poll(_PIPE_TIMEOUT_MS):
            raise BlockingIOError(errno.EAGAIN, READER_STOPPED) from None
        return 0


def _read_file(fd: int, size: int) -> Iterator[bytes]:
    """Yield the first `size` bytes of a file that may be write-only; close `fd`."""
    reader = -1
    try:
        # `next` runs the generator up to here, inside `try`: closing it then closes the descriptor.
        yield b""
        os.fdatasync(fd)
        reader = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        at = 0
        while at < size and (piece := os.pread(reader, min(_STEP_BYTES, size - at), at)):
            at += len(piece)
            yield piece
    finally:
        os.close(fd)
        if reader >= 0:
            os.close(reader)


def _reason(error: Exception) -> str:
    if isinstance(error, BrokenPipeError):
        return f"{error.strerror}, its reader has ended"
    return getattr(error, "strerror", None) or str(error)
