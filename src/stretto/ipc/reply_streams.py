"""Sends replies of many parts, as fast as the client reads.

    handler --add--> | stream | stream | --one part--> outgoing queue --> socket
                         ^                                  |
                         +------ if the queue is short -----+

Rules
- Streams are sent one after the other. Each part is sent by its own task, so that other
  connections are served in between.
- A part is created when the queue has room. A client that doesn't read stays connected, and takes
  the memory of one queue.
- An empty reply, without `has_more`, ends a stream.
"""

from __future__ import annotations

from stretto.base.c_modules import deque
from stretto.base.errors import StrettoError
from stretto.ipc.service import Raw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.base.task_runner import TaskRunner
    from stretto.ipc.connection import Connection
    from stretto.ipc.host import Deferred
    from stretto.ipc.service import Message

MAX_QUEUED_BYTES = 256 << 10
"""No further part is created while more bytes than this are queued for the client."""

MAX_STREAMS = 16
"""Maximum number of unfinished streams of a connection."""


class ReplyStreams:
    """The unfinished streams of one client.

    Args:
        runner: The task runner of the connection.
        connection: The connection to the client. Its `on_drained` is `resume` of this object.
    """

    def __init__(self, runner: TaskRunner, connection: Connection) -> None:
        self._runner = runner
        self._connection = connection
        self._streams: deque[tuple[Iterator[Message], Deferred]] = deque()
        self._posted = False

    def add(self, parts: Iterator[Message], deferred: Deferred) -> None:
        """Send each of `parts` as a reply; reject the request if there are too many streams."""
        if len(self._streams) >= MAX_STREAMS:
            deferred.reject()
        elif deferred.pending:
            self._streams.append((parts, deferred))
            self.resume()

    def resume(self) -> None:
        """Send the next part, if a stream is waiting and the outgoing queue has room."""
        has_room = self._connection.pending_bytes <= MAX_QUEUED_BYTES
        if self._streams and has_room and not self._posted:
            self._posted = True
            self._runner.post(self._send_part)

    def close(self) -> None:
        """Drop all streams: the client has disconnected."""
        self._streams.clear()

    def _send_part(self) -> None:
        self._posted = False
        if not self._streams:
            return
        parts, deferred = self._streams[0]
        try:
            part = next(parts, None)
        except StrettoError:
            self._streams.popleft()
            deferred.reject()
        else:
            if part is None:
                self._streams.popleft()
            deferred.resolve(part or Raw(), has_more=part is not None)
        self.resume()
