"""The destination of the trace: a file that gets its name when it is complete, or a pipe.

    ring     OUT.ring, a mapped buffer; at the end the trace is written to OUT.part, which is
             renamed to OUT, and OUT.ring is removed
    stream   OUT.part, renamed to OUT at the end
    pipe     `-`, a FIFO or a device: written directly

Only the owner can read the files. Symbolic links are not followed. Another recorder with the same
output is refused.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys

from stretto.base.errors import CommandError
from stretto.base.trace_name import name_complaint

FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _refuse(path: str, reason: str) -> CommandError:
    return CommandError(
        f"record: can't write the trace to {path!r}: {reason}. Choose another one with -o.", 2
    )


def _check_unused(path: str) -> None:
    """Raise CommandError if another recorder is writing the file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CommandError(
            f"record: another recording is writing {path!r}: choose another one with -o.", 2
        ) from None
    finally:
        os.close(fd)


def create_file(path: str, shown: str = "") -> int:
    """Create or replace a file; it is locked while its descriptor is open.

    Args:
        path: path of the file.
        shown: name in error messages; by default `path`.

    Raises:
        CommandError: the file can't be created, or another recorder is writing it.
    """
    _check_unused(path)
    try:
        if os.path.lexists(path):
            os.unlink(path)
        fd = os.open(path, FLAGS, 0o600)
    except OSError as error:
        raise _refuse(shown or path, _reason(error)) from error
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return fd


class Output:
    """The destination of one recording.

    Args:
        path: path given by the user; `-` is standard output.
        ring: whether the trace is kept in a ring and written at the end; otherwise it is streamed.
        mapped: whether the ring is a file beside the trace, mapped by the recorder's own service.

    Raises:
        CommandError: the output can't be written.

    Attributes:
        direct: whether the output is a pipe or device.
        to_stdout: whether the output is standard output.
        streams: whether the trace is written while the program runs.
        ring_fd: descriptor of the ring's file; -1 without one.
        ring_path: path of the ring's file; "" without one.
    """

    def __init__(self, path: str, *, ring: bool, mapped: bool = True) -> None:
        if not path:
            raise CommandError("record: -o needs a file name, or `-` for standard output.", 2)
        self.path = path
        self.to_stdout = path == "-"
        self.direct = self.to_stdout or _is_special(path)
        self.streams = not ring
        self.ring_path = ""
        self.ring_fd = self._fd = -1
        if self.direct:
            self._fd = _stdout() if self.to_stdout else _open_special(path)
            return
        _check_file(path)
        if ring and mapped:
            self.ring_path = f"{path}.ring"
            self.ring_fd = create_file(self.ring_path, path)
        elif not ring:
            self._fd = create_file(self.part_path, self.path)

    @property
    def part_path(self) -> str:
        """The path of the incomplete file."""
        return f"{self.path}.part"

    def fd(self) -> int:
        """Return the descriptor for writing, owned by this object."""
        if self._fd < 0:
            self._fd = create_file(self.part_path, self.path)
        return self._fd

    def size(self) -> int:
        """Return the size of the trace file in bytes; 0 for a pipe."""
        return 0 if self.direct else os.fstat(self._fd).st_size

    def finish(self) -> None:
        """Rename the file to its final name.

        Raises:
            CommandError: the file can't be renamed; the message contains the path of the trace.
        """
        if self.direct:
            return
        try:
            os.rename(self.part_path, self.path)
        except OSError as error:
            raise self._not_renamed(_reason(error)) from error
        self.remove_ring()

    def _not_renamed(self, reason: str) -> CommandError:
        if not os.path.exists(self.part_path):
            text = f"record: {self.part_path!r} was removed: there is no trace."
            return CommandError(f"{text}{self.recovery_hint()}")
        self.remove_ring()
        return CommandError(f"record: the trace stays in {self.part_path!r}: {reason}.")

    def remove_ring(self) -> None:
        """Remove the file of the ring; called if the trace is complete or empty."""
        if self.ring_path:
            _unlink(self.ring_path)
            self.ring_path = ""

    def discard(self) -> None:
        """Remove all files; called if nothing was recorded."""
        self.remove_ring()
        if not self.direct and self._fd >= 0:
            _unlink(self.part_path)

    def discard_if_empty(self) -> None:
        """Remove an empty trace, unless the trace can be recovered from the ring."""
        if not self.ring_path and not self.direct and self._fd >= 0 and not self.size():
            _unlink(self.part_path)

    def recovery_hint(self) -> str:
        """Return a message that explains how to recover the ring; "" if there is no ring."""
        if not os.path.exists(self.ring_path):  # The program may have removed the file.
            return ""
        from shlex import quote

        command = f"stretto recover {quote(self.ring_path)} -o ELSEWHERE"
        return f" The events are in {self.ring_path!r}: `{command}` makes a trace of it."

    def keep_ring_only(self) -> None:
        """Remove the incomplete trace file, because the ring contains the whole trace."""
        if not self.direct and self._fd >= 0:
            _unlink(self.part_path)

    def close(self) -> None:
        """Close the descriptors."""
        for fd in (self._fd, self.ring_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self.ring_fd = -1


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # Another process has removed the file.


def _is_special(path: str) -> bool:
    """Return whether the path is a FIFO, a device or the like, which is written directly."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _check_file(path: str) -> None:
    if complaint := name_complaint(path):
        raise CommandError(f"record: {complaint}.", 2)
    if os.path.isdir(path):
        raise _refuse(path, "it is a folder")
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise _refuse(path, "it is there and write-protected")


def _open_special(path: str) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _refuse(path, _reason(error)) from error


def _stdout() -> int:
    if sys.stdout is None:
        raise CommandError("record: standard output is closed: name a file with -o.", 2)
    if os.isatty(sys.stdout.fileno()):
        raise CommandError("record: a trace is no text: redirect it (> trace.pftrace).", 2)
    return os.dup(sys.stdout.fileno())
