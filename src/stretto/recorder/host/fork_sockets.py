"""The recorder's ends of its descendants' lifelines (stretto.recorder.fork_socket).

Who holds a line is a descendant, whatever user it has become: the folder lets nobody else in.
So what comes over a line is served without asking.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from stretto.base.errors import TransportError
from stretto.base.unix_socket import UnixListener, UnixSocket
from stretto.ipc.listener import Listener

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.base.stream_socket import StreamSocket


class Lifelines:
    """Accepts lines, and the connections that are dialled over them.

    Args:
        address: path of the socket.
        runner: runs all of it.
        on_connection: gets each dialled connection, to own.
        on_line: told of each line.
    """

    def __init__(
        self,
        address: str,
        runner: SelectorTaskRunner,
        on_connection: Callable[[UnixSocket], object],
        on_line: Callable[[StreamSocket], object] = lambda _: None,
    ) -> None:
        self._runner = runner
        self._on_connection = on_connection
        self._on_line = on_line
        self._lines: set[StreamSocket] = set()
        self._listener = Listener(UnixListener(address), runner, self._add)

    @property
    def count(self) -> int:
        """Lines that some process holds."""
        return len(self._lines)

    def _add(self, line: StreamSocket) -> None:
        self._lines.add(line)
        self._on_line(line)
        self._runner.watch(line.fileno(), lambda: self._receive(line))

    def _receive(self, line: StreamSocket) -> None:
        """One descriptor comes with each byte; the next one makes the line readable again."""
        try:
            received = line.recv_into(memoryview(bytearray(1)))
        except TransportError:
            received = (0, -1)
        if received is None:
            return
        size, fd = received
        if fd >= 0:
            self._connect(fd)
        if not size:
            self._drop(line)

    def _connect(self, fd: int) -> None:
        try:
            end = socket.socket(fileno=fd)
        except OSError:  # it is none
            os.close(fd)
            return
        if end.family == socket.AF_UNIX and end.type == socket.SOCK_STREAM:
            self._on_connection(UnixSocket(end))
        else:
            end.close()

    def _drop(self, line: StreamSocket) -> None:
        self._lines.discard(line)
        self._runner.unwatch(line.fileno())
        line.close()

    def close(self) -> None:
        """Accept nobody any more."""
        self._listener.close()
        for line in tuple(self._lines):
            self._drop(line)
