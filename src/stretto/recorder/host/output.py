"""Where the trace goes: a file under its final name only when it is whole, or a pipe.

    ring     OUT.ring, a mapped buffer, removed at a clean end; then OUT.part -> OUT
    stream   OUT.part all along, renamed to OUT at the end
    pipe     `-`, a FIFO or a device: written directly

Files are for their owner only, symbolic links are not followed, and a second recorder that
wants the same name is refused.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import stat
import sys

from stretto.base.errors import CommandError

FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _refuse(path: str, reason: str) -> CommandError:
    return CommandError(
        f"record: can't write the trace to {path!r}: {reason}. Choose another one with -o.", 2
    )


def _check_unused(path: str) -> None:
    """Refuse the file of a recorder that still runs."""
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
    """A new file, ours as long as its descriptor is open; one that is there is replaced.

    Args:
        path: of the file.
        shown: the name that the user knows, if it is another.

    Raises:
        CommandError: it can't be made, or another recorder is writing it.
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
        path: as given; `-` is standard output.
        ring: keep the buffer in a file beside it.
        mapped: the buffer is ours, so that it can lie in a file.

    Raises:
        CommandError: it can't be written; found out before the program starts.
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
        """The file that grows."""
        return f"{self.path}.part"

    def fd(self) -> int:
        """The descriptor to write to; it stays this object's."""
        if self._fd < 0:
            self._fd = create_file(self.part_path, self.path)
        return self._fd

    def size(self) -> int:
        """Bytes of the trace file; 0 for a pipe."""
        return 0 if self.direct else os.fstat(self._fd).st_size

    def finish(self) -> None:
        """Give the file its final name.

        Raises:
            CommandError: that isn't possible; the file keeps the name that it has.
        """
        if self.direct:
            return
        try:
            os.rename(self.part_path, self.path)
        except OSError as error:
            raise self._stays(_reason(error)) from error
        self.remove_ring()

    def _stays(self, reason: str) -> CommandError:
        if not os.path.exists(self.part_path):
            text = f"record: {self.part_path!r} was removed: there is no trace."
            return CommandError(f"{text}{self.recovery()}")
        self.remove_ring()
        return CommandError(f"record: the trace stays in {self.part_path!r}: {reason}.")

    def remove_ring(self) -> None:
        """The ring is in the trace, or was never needed."""
        if self.ring_path:
            _unlink(self.ring_path)
            self.ring_path = ""

    def discard(self) -> None:
        """Nothing was recorded: leave nothing behind."""
        self.remove_ring()
        if not self.direct and self._fd >= 0:
            _unlink(self.part_path)

    def discard_if_empty(self) -> None:
        """Nothing could be written: leave no empty file, unless there is a ring to recover."""
        if not self.ring_path and not self.direct and self._fd >= 0 and not self.size():
            _unlink(self.part_path)

    def recovery(self) -> str:
        """How to get at the events in the ring: a sentence, or nothing where there is no ring."""
        if not os.path.exists(self.ring_path):  # the program may have removed it, too
            return ""
        command = f"stretto recover {shlex.quote(self.ring_path)} -o ELSEWHERE"
        return f" The events are in {self.ring_path!r}: `{command}` makes a trace of it."

    def keep_ring_only(self) -> None:
        """The trace couldn't be written: the ring has all of it."""
        if not self.direct and self._fd >= 0:
            _unlink(self.part_path)

    def close(self) -> None:
        """Release the descriptors."""
        for fd in (self._fd, self.ring_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self.ring_fd = -1


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # somebody else was faster


def _is_special(path: str) -> bool:
    """A FIFO, a device or the like: nothing that can be renamed to."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _check_file(path: str) -> None:
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
