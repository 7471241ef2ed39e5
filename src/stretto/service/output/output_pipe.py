"""A pipe, FIFO, socket or terminal that one thread writes and another can interrupt.

A write to such a file blocks until the reader reads. So the thread waits for room in `poll`,
and `interrupt` ends the wait.

Writes must not block after `poll`. So a pipe is opened a second time, with O_NONBLOCK: the given
descriptor shares this flag with other processes. A file that can't be opened again is written in
pieces that are small enough not to block.
"""

from __future__ import annotations

import os
import select
import stat


class OutputPipe:
    """Writes to `fd`, which the caller owns."""

    def __init__(self, fd: int) -> None:
        self._own = _opened_again(fd)
        self._fd = fd if self._own < 0 else self._own
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLOUT)
        self._poll.register(self._wake, select.POLLIN)

    def write(self, data: memoryview) -> int:
        """Wait for room, write a piece and return its size; 0 after `interrupt`.

        Raises:
            OSError: The write failed.
        """
        if not data or self._interrupted(dict(self._poll.poll())):
            return 0
        try:
            return os.write(self._fd, data if self._own >= 0 else data[: select.PIPE_BUF])
        except BlockingIOError:  # Another writer has filled the pipe.
            return 0

    def _interrupted(self, events: dict[int, int]) -> bool:
        if self._wake not in events:
            return False
        os.eventfd_read(self._wake)
        return True

    def interrupt(self) -> None:
        """Make the current or the next `write` return. Any thread may call this."""
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Close the descriptors that were opened here."""
        os.close(self._wake)
        if self._own >= 0:
            os.close(self._own)


def _opened_again(fd: int) -> int:
    """Return a non-blocking descriptor of the same pipe; -1 if it can't be opened."""
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return -1
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # The pipe belongs to another user, or /proc is missing.
        return -1
