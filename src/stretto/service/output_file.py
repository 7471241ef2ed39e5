"""The file that a session writes its trace into.

Rules: an existing file is never overwritten by name, a symbolic link never followed, and
nobody but the owner can read what is created. Where the file can't take more (disk full,
quota, reader of a pipe gone), what couldn't be written is counted, a regular file is cut
back to whole packets, and the file is closed: a trace ends early, it doesn't break.
"""

from __future__ import annotations

import errno
import os
import select
import stat

from stretto.base.errors import SessionError, TransportError
from stretto.service.packet_encoder import whole_packets

_PIPE_TIMEOUT_MS = 10_000
_COPY_BYTES = 1 << 20


def create_output_file(path: str) -> int:
    """Create `path` for a trace and return its descriptor.

    Raises:
        SessionError: It exists already, or can't be created; with the reason.
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


class OutputFile:
    """Takes framed packets until it is full, broken or closed."""

    __slots__ = ("_fd", "_max_bytes", "_patience_ms", "_regular", "bytes_written")

    def __init__(self, fd: int, max_bytes: int = 0, patience_ms: float | None = None) -> None:
        """Write to `fd`, which is owned from here on.

        Args:
            fd: An open file, pipe or the like.
            max_bytes: Write less than that; 0 for no limit.
            patience_ms: How long the reader of a pipe may keep us waiting; None for as long
                as it likes (unless somebody made the pipe non-blocking).
        """
        self._fd = fd
        self._max_bytes = max_bytes
        self._patience_ms = patience_ms
        self._regular = stat.S_ISREG(os.fstat(fd).st_mode)
        self.bytes_written = 0

    @property
    def closed(self) -> bool:
        return self._fd < 0

    def fileno(self) -> int:
        """The descriptor, -1 when closed."""
        return self._fd

    def write(self, trace: bytes) -> bool:
        """Append framed packets; return False if the maximum size ends the file here.

        Raises:
            TransportError: It can't be written; the file is closed, its whole packets kept.
        """
        whole = len(trace)
        if self._max_bytes and self.bytes_written + whole >= self._max_bytes:
            whole = whole_packets(trace, self._max_bytes - self.bytes_written)
        self._write_all(trace, whole)
        return whole == len(trace)

    def _write_all(self, trace: bytes, size: int) -> None:
        view = memoryview(trace)
        done = 0
        try:
            while done < size:
                done += self._write_some(view[done:size])
        except OSError as error:
            kept = whole_packets(trace, done + 1)
            self._give_up(done, kept)
            lost = len(trace) - kept
            raise TransportError(
                f"The trace file can't be written: {_reason(error)}. {self.bytes_written} bytes "
                f"are in it, {lost} that were to follow are lost: make room and record again."
            ) from error
        self.bytes_written += size

    def _write_some(self, data: memoryview) -> int:
        if self._patience_ms is not None and not self._regular:
            # That much never blocks once there is room.
            data = data[: select.PIPE_BUF]
            self._wait_for_reader(self._patience_ms)
        try:
            return os.write(self._fd, data)
        except BlockingIOError:  # somebody made the pipe non-blocking
            self._wait_for_reader(_PIPE_TIMEOUT_MS)
            return 0

    def _wait_for_reader(self, timeout_ms: float) -> None:
        """Wait, but not for ever. Raises BlockingIOError."""
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        if not poll.poll(timeout_ms):
            raise BlockingIOError(errno.EAGAIN, "its reader doesn't read")

    def _give_up(self, done: int, kept: int) -> None:
        if self._regular and done > kept:
            try:
                end = os.lseek(self._fd, 0, os.SEEK_CUR)
                os.ftruncate(self._fd, end - (done - kept))
            except OSError:
                kept = done  # A packet cut short at the end: readers stop there.
        self.bytes_written += kept if self._regular else done
        self.close()

    def sync(self) -> None:
        """Have a regular file's data on the disk.

        Raises:
            TransportError: The disk refuses it; the file is closed.
        """
        if self.closed or not self._regular:
            return
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            self.close()
            raise TransportError(
                f"The trace file may be incomplete: {_reason(error)}; record again elsewhere."
            ) from error

    def close(self) -> None:
        """Close the descriptor. Harmless if it is closed."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            try:
                os.close(fd)
            except OSError:
                pass  # The descriptor is gone all the same; sync() reports lost data.


def copy_file(source: int, target: int) -> None:
    """Append the whole of one open file to another.

    The source may be open for writing only, as long as it has a name in /proc.

    Raises:
        OSError: The source is no regular file, or can't be read; or the target can't be
            written.
    """
    os.fdatasync(source)
    reader = os.open(f"/proc/self/fd/{source}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        while piece := os.read(reader, _COPY_BYTES):
            view = memoryview(piece)
            while view:
                view = view[os.write(target, view) :]
    finally:
        os.close(reader)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
