"""Flows through multiprocessing's SimpleQueue and Pipe; no byte is added.

    queue = TracedSimpleQueue(category="jobs")
    near, far = traced_pipe(category="control")
    Process(target=work, args=(queue, far)).start()

The creator chooses the queue's key. Other processes get the key with the queue, by fork or by
pickling.

Two counters in shared memory number the items: one counts items that are put, under the queue's own
write lock, the other counts items that are got, under its read lock. The n-th item put is the n-th
item got, also across processes. If a process is interrupted while it puts or gets an item (Ctrl-C),
the counts become unknown. From then on the queue has no arrows. Its items count as
`not synchronised` in `stretto.flows.stats()`.

`multiprocessing.Queue`, which writes in a separate thread, is in `process_queue`.
"""

from __future__ import annotations

import multiprocessing
import os
from ctypes import c_uint64
from multiprocessing.queues import SimpleQueue
from multiprocessing.reduction import ForkingPickler

from stretto.base import rpc_hooks
from stretto.base.rpc_hooks import ONE_WAY, RpcChannel, RpcMethod
from stretto.flows.channel_key import nonce
from stretto.flows.messages import MessageFlows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctypes import Array
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.synchronize import Lock
    from typing import Any

_PUT, _GOT = 0, 1
_LOST = (1 << 64) - 1
"""Replaces a count that is unknown, for good."""


def lose(counts: Array[c_uint64], index: int, connection: Connection) -> None:
    """Mark a counter as unknown: reading or writing has failed, perhaps in the middle.

    Args:
        counts: The counters that all processes share.
        index: The index of the counter.
        connection: The end of the pipe. If this process has closed it, nothing was read or written.
    """
    if not connection.closed:
        counts[index] = _LOST


def step(counts: Array[c_uint64], index: int) -> int:
    """Increment a counter; return the new value, or 0 if the value is unknown."""
    if counts[index] == _LOST:
        return 0
    counts[index] += 1
    return counts[index]


class TracedSimpleQueue(SimpleQueue):  # type: ignore[type-arg]  # generic for type checkers only
    """A SimpleQueue whose items are flows.

    Args:
        category: The category of the items.
        name: The name of the items: the argument `method` of their slices.
        context: A context of `multiprocessing.get_context()`.
    """

    # These are attributes of `multiprocessing.SimpleQueue`.
    _reader: Connection
    _writer: Connection
    _rlock: Lock
    _wlock: Lock

    def __init__(
        self, *, category: str, name: str = "item", context: BaseContext | None = None
    ) -> None:
        context = context or multiprocessing.get_context()
        super().__init__(ctx=context)
        self._counts = context.RawArray(c_uint64, 2)
        self._trace(category, name, nonce())

    def put(self, obj: Any) -> None:
        """Put an item; blocks while the pipe is full."""
        hooks = rpc_hooks.hooks
        data = ForkingPickler.dumps(obj)
        with self._wlock:
            stamp = 0 if hooks is None else hooks.now()
            try:
                self._writer.send_bytes(data)
                number = step(self._counts, _PUT)
            except BaseException:
                lose(self._counts, _PUT, self._writer)
                raise
            if hooks is not None:
                hooks.sent(self._channel(), stamp, self._method, ONE_WAY, number, len(data))

    def get(self) -> Any:
        """Wait for an item, and return it."""
        hooks = rpc_hooks.hooks
        span = None
        with self._rlock:
            try:
                data = self._reader.recv_bytes()
                number = step(self._counts, _GOT)
            except BaseException:
                lose(self._counts, _GOT, self._reader)
                raise
            if hooks is not None:
                span = hooks.received(self._channel(), self._method, ONE_WAY, number, len(data))
        if span is not None:
            with span:
                pass
        return ForkingPickler.loads(data)

    def __getstate__(self) -> Any:
        own = (self._counts, self._category, self._method.name, self._key)
        return super().__getstate__(), own

    def __setstate__(self, state: Any) -> None:
        inherited, (self._counts, category, name, key) = state
        super().__setstate__(inherited)
        self._trace(category, name, key)

    def _trace(self, category: str, name: str, key: int) -> None:
        self._category = category
        self._method = RpcMethod("SimpleQueue", name, 0, category)
        self._key = key
        self._own_channel: tuple[int, RpcChannel] | None = None

    def _channel(self) -> RpcChannel:
        """Return this process's channel. A forked child makes another one with equal counters."""
        pid = os.getpid()
        if self._own_channel is None or self._own_channel[0] != pid:
            channel = RpcChannel(None, is_server=False, numbered=True, key=self._key)
            self._own_channel = (pid, channel)
        return self._own_channel[1]


class TracedConnection:
    """One end of a pipe, with `send` and `recv` like `multiprocessing.Connection`.

    It may be passed to another process before its first use, but not afterwards.
    """

    def __init__(
        self, connection: Connection, *, category: str, name: str, is_server: bool, key: int
    ) -> None:
        self.connection = connection
        self._setup = (category, name, is_server, key)
        self._flows = MessageFlows(
            None, category=category, is_server=is_server, service="Pipe", key=key
        )

    def send(self, obj: Any) -> None:
        """Send an object."""
        data = ForkingPickler.dumps(obj)
        with self._flows.sending(self._setup[1], size=len(data)):
            self.connection.send_bytes(data)

    def recv(self) -> Any:
        """Wait for an object, and return it.

        Raises:
            EOFError: The other end is closed.
        """
        try:
            data = self.connection.recv_bytes()
        except BaseException:
            self._flows.lost()
            raise
        with self._flows.handling(self._setup[1], size=len(data)):
            return ForkingPickler.loads(data)

    def poll(self, timeout: float | None = 0.0) -> bool:
        """Whether an object can be received now."""
        return self.connection.poll(timeout)

    def fileno(self) -> int:
        """Return the descriptor, on which the caller can wait."""
        return self.connection.fileno()

    def close(self) -> None:
        """Close this end."""
        self.connection.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _connection, (self.connection, *self._setup)


def _connection(
    connection: Connection, category: str, name: str, is_server: bool, key: int
) -> TracedConnection:
    return TracedConnection(connection, category=category, name=name, is_server=is_server, key=key)


def traced_pipe(
    *, category: str, name: str = "message", context: BaseContext | None = None
) -> tuple[TracedConnection, TracedConnection]:
    """Make a bidirectional pipe.

    Args:
        category: The category of the messages.
        name: The name of the messages: the argument `method` of their slices.
        context: A context of `multiprocessing.get_context()`.
    """
    near, far = (context or multiprocessing.get_context()).Pipe()
    key = nonce()
    return (
        TracedConnection(near, category=category, name=name, is_server=False, key=key),
        TracedConnection(far, category=category, name=name, is_server=True, key=key),
    )
