"""A pipe, FIFO, socket or terminal that a thread writes to, while another may stop it.

Writing to such a file blocks in the kernel as long as its reader likes. Here a thread waits
for room in `poll`, which `interrupt` ends. A pipe is opened once more, so that it can be
made non-blocking: the flag of the given descriptor belongs to whoever else has it, too.
What can't be opened again is written in pieces that never block once there is room.
"""

from __future__ import annotations

import os
import select
import stat


class OutputPipe:
    """Writes to `fd`, which stays the caller's."""

    __slots__ = ("_fd", "_own", "_poll", "_wake")

    def __init__(self, fd: int) -> None:
        self._own = _opened_again(fd)
        self._fd = fd if self._own < 0 else self._own
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLOUT)
        self._poll.register(self._wake, select.POLLIN)

    def write(self, data: memoryview) -> int:
        """Wait for room, and write what fits; 0 after `interrupt`.

        Raises:
            OSError: It can't be written.
        """
        if not data or self._interrupted(dict(self._poll.poll())):
            return 0
        try:
            return os.write(self._fd, data if self._own >= 0 else data[: select.PIPE_BUF])
        except BlockingIOError:  # another writer was faster
            return 0

    def _interrupted(self, events: dict[int, int]) -> bool:
        if self._wake not in events:
            return False
        os.eventfd_read(self._wake)
        return True

    def interrupt(self) -> None:
        """Have `write` return, or the next one if there is none now; from any thread."""
        os.eventfd_write(self._wake, 1)

    def close(self) -> None:
        """Give back what was opened here."""
        os.close(self._wake)
        if self._own >= 0:
            os.close(self._own)


def _opened_again(fd: int) -> int:
    """A non-blocking descriptor of the same pipe, or -1."""
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        return -1
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # another user's, or no /proc
        return -1
