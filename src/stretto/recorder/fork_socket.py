"""The fork socket: a connection to the recorder that a recorded process shares with its forks.

    process --connects to--> FOLDER/fork.sock
       |  fork: the child inherits the connection
       +--passes one end of a new socket pair--> recorder: the child's producer connection
       |--passes the memory with its totals----> recorder: reads it at the end
       '--sends bytes: n + 1 for the pattern n of `--include` that a function has matched

It has three purposes:

- If a parent has dropped privileges, its child may not enter the recorder's folder. The child then
  connects over the inherited socket.
- The socket stays open while a process holds it, also between a fork and the child's own
  connection. So the recorder knows whether a process is running that may still connect.
- A process reports its totals and the patterns that it has matched, also if it is killed soon, and
  if it has changed its user.

`exec` closes the socket: the executed program finds the recorder by its environment.
"""

from __future__ import annotations

import _socket as socket
import os

from stretto.base.errors import TransportError
from stretto.base.stream_socket import moved_up
from stretto.base.unix_socket import UnixSocket


class ForkSocket:
    """The recorded process's side of the connection.

    Args:
        address: path of the recorder's listening socket.
        timeout_ms: time to wait for the connection, in ms.

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
        """Whether the descriptor is still this socket: the program may close or reuse it."""
        try:
            return self._identity() == self._file
        except OSError:
            return False

    def connect(self) -> UnixSocket:
        """Return a new connection from this process to the recorder's service.

        Raises:
            TransportError: the socket is closed, or the recorder has ended.
        """
        if not self.is_open:
            raise TransportError("the program has closed its connection to the recorder")
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        connection = UnixSocket(moved_up(near))
        try:
            sent = self._end.send(b"\0", far.fileno())
        except TransportError:
            connection.close()
            raise
        finally:
            far.close()
        if not sent:
            connection.close()
            raise TransportError("the recorder takes no more connections: is it stopped?")
        return connection

    def report(self, number: int, fd: int = -1) -> None:
        """Send a byte, and perhaps a descriptor, to the recorder; no effect if it has ended."""
        try:
            if self.is_open:
                self._end.send(bytes([number]), fd)
        except TransportError:
            pass

    def close(self) -> None:
        """Close this process's descriptor. No effect if the program has closed it."""
        if self.is_open:
            self._end.close()
