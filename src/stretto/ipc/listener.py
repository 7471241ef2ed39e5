"""Accepts connections on a listening socket, for as long as descriptors last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.base.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.stream_socket import StreamListener, StreamSocket
    from stretto.base.task_runner import TaskRunner

RETRY_MS = 100
"""How long a listener rests when the process has no descriptor left."""


class Listener:
    """Hands each new connection on.

    Args:
        socket: Belongs to this object from now on.
        runner: Where everything runs.
        on_connection: Gets each connected socket, to own.
    """

    __slots__ = ("_on_connection", "_runner", "_socket")

    def __init__(
        self,
        socket: StreamListener,
        runner: TaskRunner,
        on_connection: Callable[[StreamSocket], object],
    ) -> None:
        self._socket: StreamListener | None = socket
        self._runner = runner
        self._on_connection = on_connection
        self._watch()

    def close(self) -> None:
        """Accept nothing more. Connections that exist go on."""
        if self._socket is not None:
            self._runner.unwatch(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _watch(self) -> None:
        if self._socket is not None:
            self._runner.watch(self._socket.fileno(), self._on_readable)

    def _on_readable(self) -> None:
        while self._socket is not None:
            try:
                end = self._socket.accept()
            except TransportError:
                # The connection stays in the queue: without a rest this would spin.
                self._runner.unwatch(self._socket.fileno())
                self._runner.post_delayed(self._watch, RETRY_MS)
                return
            if end is None:
                return
            self._on_connection(end)
