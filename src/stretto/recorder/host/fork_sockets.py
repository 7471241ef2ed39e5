"""The recorder's side of the fork sockets (see `stretto.recorder.fork_socket`).

Only descendants of the recorder can hold a fork socket. Other users may not enter the workspace,
where the sockets are connected, and a child inherits its parent's socket. Parent and child may have
different users. So connections that are passed over a fork socket are accepted without a check of
the user.
"""

from __future__ import annotations

import _socket as socket
import os

from stretto.base.errors import TransportError
from stretto.base.unix_socket import UnixSocket
from stretto.ipc.listener import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.base.stream_socket import StreamSocket
    from stretto.base.unix_socket import UnixListener


class ForkSockets:
    """Accepts fork sockets, and the connections that are passed over them.

    Args:
        listening: the listening socket; owned by this object from now on.
        runner: the task runner that watches the sockets.
        on_connection: called with each passed connection; the callback then owns the connection.
        on_process_socket: called with each accepted fork socket.
    """

    def __init__(
        self,
        listening: UnixListener,
        runner: SelectorTaskRunner,
        on_connection: Callable[[UnixSocket], object],
        on_process_socket: Callable[[StreamSocket], object] = lambda _: None,
    ) -> None:
        self._runner = runner
        self._on_connection = on_connection
        self._on_process_socket = on_process_socket
        self._ends: set[StreamSocket] = set()
        self._listener = Listener(listening, runner, self._add)

    @property
    def count(self) -> int:
        """Number of fork sockets that at least one process holds."""
        return len(self._ends)

    def _add(self, end: StreamSocket) -> None:
        self._ends.add(end)
        self._on_process_socket(end)
        self._runner.watch(end.fileno(), lambda: self._receive(end))

    def _receive(self, end: StreamSocket) -> None:
        """Receive one byte and its descriptor; if more bytes wait, the socket stays readable."""
        try:
            received = end.recv_into(memoryview(bytearray(1)))
        except TransportError:
            received = (0, -1)
        if received is None:
            return
        size, fd = received
        if fd >= 0:
            self._accept(fd)
        if not size:
            self._drop(end)

    def _accept(self, fd: int) -> None:
        try:
            passed = socket.socket(fileno=fd)
        except OSError:  # The descriptor isn't a socket.
            os.close(fd)
            return
        if passed.family == socket.AF_UNIX and passed.type == socket.SOCK_STREAM:
            self._on_connection(UnixSocket(passed, guarded=False))
        else:
            passed.close()

    def _drop(self, end: StreamSocket) -> None:
        self._ends.discard(end)
        self._runner.unwatch(end.fileno())
        end.close()

    def close(self) -> None:
        """Stop listening and close all fork sockets."""
        self._listener.close()
        for end in tuple(self._ends):
            self._drop(end)
