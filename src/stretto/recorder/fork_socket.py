"""The fork socket: a connection to the recorder that a recorded process shares with its forks.

    process --connects to--> FOLDER/fork.sock
       |  fork: the child inherits the connection
       +--passes one end of a new socket pair--> recorder: the child's producer connection

It has two purposes. A forked child that may not enter the recorder's folder, as its parent has
given up its privileges, connects over the socket that it inherited. And the recorder knows that a
process lives that may still connect: the socket stays open as long as one process holds it, also
between a fork and the child's own connection.

`exec` closes it: an executed program finds the recorder by its environment.
"""

from __future__ import annotations

import os
import socket

from stretto.base.errors import TransportError
from stretto.base.stream_socket import moved_up
from stretto.base.unix_socket import UnixSocket


class ForkSocket:
    """The process's end of the connection.

    Args:
        address: path of the recorder's listening socket.
        timeout_ms: for connecting.

    Raises:
        TransportError: the recorder has ended, or refuses the connection.
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
        """Whether the descriptor is still this socket: the program may close or reuse any."""
        try:
            return self._identity() == self._file
        except OSError:
            return False

    def connect(self) -> UnixSocket:
        """Return a new connection to the recorder's service, made by this process.

        Raises:
            TransportError: the socket is closed, or the recorder has ended.
        """
        if not self.is_open:
            raise TransportError("the program has closed its connection to the recorder")
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
        """Close this process's descriptor; does nothing if the program has closed it."""
        if self.is_open:
            self._end.close()
