"""Accepts connections on a listening socket; pauses while no descriptor is free."""

from __future__ import annotations

from stretto.base.errors import TransportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.errors import StrettoError
    from stretto.base.stream_socket import StreamListener, StreamSocket
    from stretto.base.task_runner import TaskRunner

ACCEPTS_PER_TURN = 8
"""Maximum number of connections accepted per task."""
RETRY_MS = 100
"""Pause of a listener when the process has no descriptor left."""


def ignore(_error: StrettoError) -> None:
    """Ignore an error: the default of `on_error`."""


class Listener:
    """Accepts connections and passes them to a callback.

    Args:
        socket: The listening socket; owned by this object from now on.
        runner: The task runner of the listener.
        on_connection: Called with each connected socket; the callback then owns the socket.
        on_error: Called when accepting fails; called again only after a success.
    """

    def __init__(
        self,
        socket: StreamListener,
        runner: TaskRunner,
        on_connection: Callable[[StreamSocket], object],
        on_error: Callable[[StrettoError], object] = ignore,
    ) -> None:
        self._socket: StreamListener | None = socket
        self._runner = runner
        self._on_connection = on_connection
        self._on_error = on_error
        self._failing = False
        self._watch()

    def close(self) -> None:
        """Stop accepting. Existing connections stay open."""
        if self._socket is not None:
            self._runner.unwatch(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _watch(self) -> None:
        if self._socket is not None:
            self._runner.watch(self._socket.fileno(), self._on_readable)

    def _on_readable(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if self._socket is None:
                return
            try:
                end = self._socket.accept()
            except TransportError as error:
                self._rest(self._socket, error)
                return
            if end is None:
                return
            self._failing = False
            self._on_connection(end)

    def _rest(self, socket: StreamListener, error: TransportError) -> None:
        """Pause accepting: the connection stays in the backlog, and the socket readable."""
        self._runner.unwatch(socket.fileno())
        self._runner.post_delayed(self._watch, RETRY_MS)
        if not self._failing:
            self._failing = True
            self._on_error(error)
