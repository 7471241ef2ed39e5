"""The recorder's side of the fork sockets (see `stretto.recorder.fork_socket`).

Only descendants of the recorder can hold a fork socket. Other users may not enter the workspace,
where the sockets are connected, and a child inherits its parent's socket. Parent and child may have
different users. So connections that are passed over a fork socket are accepted without a check of
the user.

A descriptor that isn't a socket is the memory with the totals of a process (`totals`). A byte n + 1
says that the process has called a function that matches the pattern n of `--include`.
"""

from __future__ import annotations

import _socket as socket

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
        on_memory: called with the descriptor of each process's totals; the callback then owns it.
        on_process_socket: called with each accepted fork socket.

    Attributes:
        matched: the numbers of the patterns that some function has matched.
    """

    def __init__(
        self,
        listening: UnixListener,
        runner: SelectorTaskRunner,
        on_connection: Callable[[UnixSocket], object],
        on_memory: Callable[[int], object],
        on_process_socket: Callable[[StreamSocket], object] = lambda _: None,
    ) -> None:
        self._runner = runner
        self._on_connection = on_connection
        self._on_memory = on_memory
        self.matched: set[int] = set()
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
        byte = bytearray(1)
        try:
            received = end.recv_into(memoryview(byte))
        except TransportError:
            received = (0, -1)
        if received is None:
            return
        size, fd = received
        if fd >= 0:
            self._accept(fd)
        if not size:
            self._drop(end)
        elif byte[0]:
            self.matched.add(byte[0] - 1)

    def _accept(self, fd: int) -> None:
        try:
            passed = socket.socket(fileno=fd)
        except OSError:  # The descriptor isn't a socket.
            self._on_memory(fd)
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
