"""The state of a client's channel: waiting callers and queued events.

Transaction ids are used once. Ids of calls count up from 1; ids that are assigned under the
write lock count up from 2^31. A caller that stops waiting (timeout, cancellation) removes its
waiter. A reply with an id that was assigned and has no waiter is dropped, and its handles are
closed. A forked child continues at a random id, because the parent continues at the next id.

Events wait in a bounded queue: when the queue is full, the oldest event is dropped and counted.

No function of this module takes a lock or waits.
"""

from __future__ import annotations

import os
import random
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakSet

from stretto_fidl.bindings.protocols import EVENT
from stretto_fidl.codec.headers import decode_epitaph
from stretto_fidl.codec.wire_error import WireError
from stretto_fidl.errors import FidlError
from stretto_fidl.transport.errors import ClosedError, PeerError
from stretto_fidl.transport.results import request_in
from stretto_fidl.transport.status import OK, PEER_CLOSED

if TYPE_CHECKING:
    from typing import Protocol as Interface

    from stretto_fidl.bindings.protocols import Method, Protocol
    from stretto_fidl.transport.endpoint import Incoming

    class Waiter(Interface):
        """The interface of a caller that waits for a reply."""

        method: Method

        def resolve(self, incoming: Incoming) -> None:
            """Give the reply to the caller, and end the caller's wait."""

        def fail(self, error: FidlError) -> None:
            """Give an error to the caller, and end the caller's wait. No reply will come."""


EVENT_LIMIT: Final = 1024
ASSIGNED: Final = 1 << 31
"""The first transaction id of the range that is assigned under the write lock."""


class EventMessage(NamedTuple):
    """A received event.

    Attributes:
        name: The name of the event; "" if it is unknown to the protocol.
        ordinal: The ordinal of the event.
        payload: The payload of the event; None if the event has no payload or is unknown.
    """

    name: str
    ordinal: int
    payload: Any


class Numbers:
    """Allocates transaction ids, each of which is used once.

    Args:
        first: The first id of the range.
        used: Whether another process may have used the channel. If so, the first id is random.
    """

    __slots__ = ("_begin", "_end", "_next")

    def __init__(self, first: int, *, used: bool) -> None:
        self._begin = first + (random.getrandbits(30) if used else 0)
        self._next = max(self._begin, first | 1)
        self._end = first + ASSIGNED

    def allocate(self) -> int:
        """Return the next transaction id.

        Raises:
            FidlError: No transaction id is left.
        """
        if self._next >= self._end:
            raise FidlError("2^31 calls were made: connect anew")
        self._next += 1
        return self._next - 1

    def continue_at_random(self) -> None:
        """Skip a random number of ids, because another process may use the next ids."""
        self._next += random.getrandbits(30) % max(self._end - self._next, 1)

    def was_allocated(self, number: int) -> bool:
        """Return whether an id has been allocated."""
        return self._begin <= number < self._next


class Conversation:
    """The state of a client's channel; see the module's docstring.

    Args:
        protocol: The protocol of the channel.
        used: Whether another process may have used this end of the channel.
        event_limit: The maximum length of the queue of events.
    """

    def __init__(self, protocol: type[Protocol], *, used: bool, event_limit: int) -> None:
        self.protocol = protocol
        self.own = Numbers(0, used=used)
        self.assigned = Numbers(ASSIGNED, used=used)
        self.waiters: dict[int, Waiter] = {}
        self.events: deque[Incoming] = deque()
        self.lost_events = 0
        self.error: FidlError | None = None
        """The reason why the channel has ended."""
        self._event_limit = event_limit
        _all.add(self)

    def check_open(self) -> None:
        """Raise the error that ended the channel, if it has ended."""
        if self.error is not None:
            raise fresh(self.error)

    def take(self, incoming: Incoming) -> bool:
        """Handle a message that was read.

        If the exception of a signal handler interrupts this call, a second call with the same
        message completes it.

        Returns:
            Whether the message is an event.

        Raises:
            FidlError: The message is an epitaph, or breaks FIDL's rules. The caller has to end the
                channel.
        """
        header = incoming.header
        if header.is_epitaph:
            incoming.drop()
            raise ClosedError(decode_epitaph(incoming.data))
        try:
            if not header.txid:
                self._take_event(incoming)
                return True
            self._take_reply(incoming)
        except FidlError:
            incoming.drop()
            raise
        return False

    def _take_reply(self, incoming: Incoming) -> None:
        txid, ordinal = incoming.header.txid, incoming.header.ordinal
        waiter = self.waiters.get(txid)
        if waiter is not None:
            if waiter.method.ordinal != ordinal:
                raise PeerError(f"a reply to {waiter.method.name} has the ordinal {ordinal:#x}")
            waiter.resolve(incoming)
            incoming.taken = True
            self.waiters.pop(txid, None)
        elif self.own.was_allocated(txid) or self.assigned.was_allocated(txid):
            if not incoming.taken:
                incoming.drop()
        else:
            raise PeerError(f"a reply to the transaction {txid}, which there never was")

    def _take_event(self, incoming: Incoming) -> None:
        header = incoming.header
        if self._event(header.ordinal) is None and not (
            header.flexible and self.protocol.OPENNESS in ("open", "ajar")
        ):
            raise PeerError(f"an event of the unknown ordinal {header.ordinal:#x}")
        if incoming.taken or (self.events and self.events[-1] is incoming):
            return
        self.events.append(incoming)
        if len(self.events) > self._event_limit:
            self.events.popleft().drop()
            self.lost_events += 1

    def has_event_or_end(self) -> bool:
        """Return whether an event is queued or the channel has ended."""
        return bool(self.events) or self.error is not None

    def next_event(self) -> Incoming:
        """Remove the oldest event and return it. The queue must not be empty."""
        incoming = self.events[0]
        incoming.taken = True
        self.events.popleft()
        return incoming

    def _event(self, ordinal: int) -> Method | None:
        method = self.protocol.BY_ORDINAL.get(ordinal)
        return method if method is not None and method.kind == EVENT else None

    def decode_event(self, incoming: Incoming) -> EventMessage:
        """Decode an event.

        Raises:
            WireError: The event breaks FIDL's rules.
        """
        ordinal = incoming.header.ordinal
        method = self._event(ordinal)
        if method is None:
            for handle in incoming.handles:
                handle.close()
            return EventMessage("", ordinal, None)
        return EventMessage(method.name, ordinal, request_in(method, incoming))

    def end(self, error: FidlError) -> None:
        """End the channel. Every waiter fails with the error of the first call of this method."""
        if self.error is None:
            self.error = error
        for txid, waiter in list(self.waiters.items()):
            waiter.fail(fresh(self.error))
            self.waiters.pop(txid, None)

    def raise_unless_closed_normally(self) -> None:
        """Raise the error that ended the channel, unless one side closed it without an error."""
        error = self.error
        if error is None:
            return
        if isinstance(error, ClosedError) and (error.by_us or error.status in (OK, PEER_CLOSED)):
            return
        raise fresh(error)


def fresh(error: FidlError) -> FidlError:
    """Return a copy of an error that several callers raise.

    Each caller raises a copy of its own, because an exception has one traceback.
    """
    if isinstance(error, ClosedError):
        return ClosedError(error.status, by_us=error.by_us)
    if isinstance(error, PeerError):
        return PeerError(str(error), error.status)
    if isinstance(error, WireError):
        return PeerError(str(error))
    return FidlError(str(error))


_all: WeakSet[Conversation] = WeakSet()


def _after_fork_in_child() -> None:
    for conversation in _all:
        conversation.own.continue_at_random()
        conversation.assigned.continue_at_random()


os.register_at_fork(after_in_child=_after_fork_in_child)
