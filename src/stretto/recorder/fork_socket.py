"""A recorded process's second connection to its recorder, which its forks inherit.

    process --connects to--> FOLDER/lifeline.sock
       |  fork: the child has it as well
       +--one end of a new socket pair--> recorder: a producer's connection, the child's

Two things need it. A child of a fork that may not enter the recorder's folder (the parent has
given up its privileges) is let in by what it inherited. And the recorder knows that somebody
lives who will still connect: as long as one process holds the line it stays open, also
between a fork and the child's own connection.

It is closed by exec: what is started anew finds the recorder by its environment.
"""

from __future__ import annotations

import os
import socket

from stretto.base.errors import TransportError
from stretto.base.stream_socket import moved_up
from stretto.base.unix_socket import UnixSocket


class Lifeline:
    """The line.

    Args:
        address: path of the recorder's socket for lines.
        timeout_ms: for connecting.

    Raises:
        TransportError: the recorder isn't there, or lets nobody in.
    """

    __slots__ = ("_end", "_file")

    def __init__(self, address: str, timeout_ms: float) -> None:
        self._end = UnixSocket.connect(address, timeout_ms)
        self._file = self._identity()

    def _identity(self) -> tuple[int, int]:
        status = os.fstat(self._end.fileno())
        return status.st_dev, status.st_ino

    @property
    def is_open(self) -> bool:
        """The program has not closed it; nor has it used the number for something else."""
        try:
            return self._identity() == self._file
        except OSError:
            return False

    def dial(self) -> UnixSocket:
        """A new connection to the recorder's service, as from this process.

        Raises:
            TransportError: the line is closed, or the recorder has gone.
        """
        if not self.is_open:
            raise TransportError("the program has closed the recorder's line: nothing to dial")
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with far:
            connection = UnixSocket(moved_up(near))
            try:
                sent = self._end.send(b"\0", far.fileno())
            except TransportError:
                connection.close()
                raise
        if not sent:
            connection.close()
            raise TransportError("the recorder takes no more connections: is it stopped?")
        return connection

    def close(self) -> None:
        """This process needs it no more. Harmless if it is closed."""
        if self.is_open:
            self._end.close()
