"""Flows through `multiprocessing.Queue` and `JoinableQueue`; no byte is added.

    queue = TracedQueue(category="jobs")
    Process(target=work, args=(queue,)).start()

`put` only appends an item to a buffer. The feeder, a thread of the same process, pickles and writes
the item later. So an item gets its number at `put`, and the number is passed to the reader through
the array `numbers` in shared memory:

    put      buffer: (item, number) ...                      a number: pid, and a count
    feeder   numbers[written % SIZE] = number; write         under the queue's write lock
             written += 1
    get      read; number = numbers[read % SIZE]             under its read lock
             read += 1

The array has room for more items than a pipe can hold. If a pipe was enlarged and holds more items,
the additional items have no arrow. After an interrupted read or write no item has an arrow.

The size of an item is unknown to its sender, so only the receiver records it.

`multiprocessing.Queue._reset` sets attributes of the queue: its buffer, and its functions for
writing and reading. The override of `_reset` replaces these attributes.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from ctypes import c_uint64
from multiprocessing.queues import JoinableQueue, Queue

from stretto.base import rpc_hooks
from stretto.base.rpc_hooks import ONE_WAY, RpcChannel, RpcMethod
from stretto.flows.channel_key import nonce
from stretto.flows.queues import lose, step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from ctypes import Array
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from typing import Any

SIZE = 1 << 14
"""More items than a 64 KiB pipe can hold: each has a 4-byte length and at least 4 bytes."""

_WRITTEN, _READ, _FIRST = 0, 1, 2


class _Buffer(deque):  # type: ignore[type-arg]  # of (item, number)
    """A queue's buffer: the items that the feeder has not written yet.

    Attributes:
        current: The number of the item that the feeder is writing.
        last: The number of the latest item of each thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self.current = 0
        self.last = threading.local()
        self._next = os.getpid() << 32

    def append(self, item: Any) -> None:
        """Append an item. Called under the lock of the buffer."""
        self._next += 1
        self.last.number = self._next
        super().append((item, self._next))

    def popleft(self) -> Any:
        """Remove and return the first item. Called by the feeder only."""
        item, self.current = super().popleft()
        return item


class _Feed:
    """Writes items on the feeder thread, without a reference to the queue, which may be deleted."""

    def __init__(self, writer: Connection, numbers: Array[c_uint64], buffer: _Buffer) -> None:
        self._writer = writer
        self._numbers = numbers
        self._buffer = buffer

    def send(self, data: bytes) -> None:
        """Write an item, under the write lock."""
        numbers = self._numbers
        try:
            numbers[_FIRST + int(numbers[_WRITTEN]) % SIZE] = self._buffer.current
            self._writer.send_bytes(data)
            step(numbers, _WRITTEN)
        except BaseException:
            lose(numbers, _WRITTEN, self._writer)
            raise


class _Traced:
    """The first base class of both queues; their second one is multiprocessing's class.

    Args:
        category: The category of the items.
        name: The name of the items: the argument `method` of their slices.
        maxsize: The largest number of items in the queue; 0 for no limit.
        context: A context of `multiprocessing.get_context()`.
    """

    # These are attributes of `multiprocessing.Queue`.
    _buffer: Any
    _reader: Connection
    _writer: Connection
    _send_bytes: Callable[[bytes], None]

    def __init__(
        self,
        maxsize: int = 0,
        *,
        category: str,
        name: str = "item",
        context: BaseContext | None = None,
    ) -> None:
        context = context or multiprocessing.get_context()
        self._trace(context.RawArray(c_uint64, _FIRST + SIZE), category, name, nonce())
        super().__init__(maxsize, ctx=context)  # type: ignore[call-arg]

    def _trace(self, numbers: Array[c_uint64], category: str, name: str, key: int) -> None:
        self._numbers = numbers
        self._category = category
        self._method = RpcMethod("Queue", name, 0, category)
        self._key = key
        self._got = threading.local()

    def __getstate__(self) -> Any:
        own = (self._numbers, self._category, self._method.name, self._key)
        return super().__getstate__(), own

    def __setstate__(self, state: Any) -> None:
        inherited, own = state
        self._trace(*own)
        super().__setstate__(inherited)  # type: ignore[misc]

    def _reset(self, after_fork: bool = False) -> None:
        super()._reset(after_fork)  # type: ignore[misc]
        self._channel = RpcChannel(None, is_server=False, numbered=True, key=self._key)
        self._buffer = _Buffer()
        self._send_bytes = _Feed(self._writer, self._numbers, self._buffer).send
        del self._recv_bytes  # This instance attribute would hide the method below.

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put an item; blocks while the queue is full."""
        hooks = rpc_hooks.hooks
        stamp = 0 if hooks is None else hooks.now()
        super().put(obj, block, timeout)  # type: ignore[misc]
        if hooks is not None:
            number = self._buffer.last.number
            hooks.sent(self._channel, stamp, self._method, ONE_WAY, number, None)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Wait for an item, and return it."""
        self._got.span = None
        item = super().get(block, timeout)  # type: ignore[misc]
        span = self._got.span
        if span is not None:
            with span:
                pass
        return item

    def _recv_bytes(self) -> bytes:
        """Read an item, under the read lock."""
        numbers = self._numbers
        try:
            data = self._reader.recv_bytes()
            read = step(numbers, _READ)
        except BaseException:
            lose(numbers, _READ, self._reader)
            raise
        number = 0
        # If there are more unread items than entries, the entry may belong to a later item. The
        # test is also false if the count of written items is lost: a lost count is the largest
        # number.
        if read and numbers[_WRITTEN] - read < SIZE - 1:
            number = int(numbers[_FIRST + (read - 1) % SIZE])
        hooks = rpc_hooks.hooks
        if hooks is not None:
            self._got.span = hooks.received(self._channel, self._method, ONE_WAY, number, len(data))
        return data


class TracedQueue(_Traced, Queue):  # type: ignore[type-arg]  # generic for type checkers only
    """A Queue whose items are flows."""


class TracedJoinableQueue(_Traced, JoinableQueue):  # type: ignore[type-arg]
    """A JoinableQueue whose items are flows."""
