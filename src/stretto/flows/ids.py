"""Flow ids that each end of a channel computes on its own.

All ids are 64 bits; 0 means: no flow.

`AnchoredIds` is the default. Each direction of a channel has a state (anchor, count): the latest
transaction id, and the number of messages since then.

    new txid                        anchor = txid, count = 0
    no txid, or a further reply     count += 1
    id = flow_id(key of the direction, anchor << 32 | count)

A request and its first reply have the same id, whatever the order of the messages. No other
messages of a channel share an id.

The id of a two-way message depends only on its txid. The id of a one-way message depends on the
latest two-way message and a small count. So an end that has missed messages assigns no ids to
one-way messages until the next two-way message, which synchronises both ends. If an end doesn't
notice that it has missed messages, a few messages may get wrong ids until then. If two processes
write to a channel at once, its messages can't be counted, and get no ids.

`NumberedIds` is for protocols that number each request, one-way requests too (Perfetto's IPC).
Nothing is counted, so no count can be lost.

`Rfc0035Ids` follows Fuchsia's RFC-0035: its example (`rfc0035`) or its text (`hashed`). It exists
for comparison, and for traces that have to match other implementations of the RFC. The ids depend
only on the txid: every one-way message of a method has the same id, and the example's ids repeat
after 256 transactions. `rfc0035` computes the intended expression. With the precedence of C and
Python, `koid & 0xFFFF << 48 | …` would keep the *top* 16 bits of the koid, which are all zero: ids
would not depend on the channel.

At run time the C class `stretto.flows.native.FlowIds` computes the ids. `AnchoredIds` and
`NumberedIds` compute the same ids in Python: the tests compare both.
"""

from __future__ import annotations

from stretto import flow_id
from stretto.base.rpc_hooks import CONTROL, REPLY
from stretto.flows.mixing import U64, combine, mix64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class ChannelIds(Protocol):
        """The ids of one end of one channel."""

        def next(self, outgoing: bool, kind: int, txid: int, ordinal: int, answer: int = 0) -> int:
            """Count a message; return its id, or 0. The caller holds the lock of the direction.

            Args:
                outgoing: Whether this end wrote the message.
                kind: The kind of the message, as in `stretto.base.rpc_hooks`.
                txid: The message's transaction id, or 0.
                ordinal: The ordinal of the message's method.
                answer: The number of earlier replies to the same request.
            """

        def skip(self, outgoing: bool, kind: int, txid: int, answer: int = 0) -> object:
            """Count a message that needs no id."""

        def lost(self, outgoing: bool) -> None:
            """Record that an unknown number of messages was not counted."""

        def disable(self) -> None:
            """Make `next` return 0 from now on: other processes may use the channel, too."""


MAX_COUNT = 0xFFFFFFFF
"""The largest count after one anchor; then there are no ids until the next anchor."""

TO_SERVER = 1
TO_CLIENT = 2


def rfc0035(koid: int, ordinal: int, txid: int) -> int:
    """Return an id as in RFC-0035's example: koid (16 bits), ordinal (32), zeros (8), txid (8)."""
    return ((koid & 0xFFFF) << 48) | ((ordinal & 0xFFFFFFFF) << 16) | (txid & 0xFF)


def hashed(koid: int, ordinal: int, txid: int) -> int:
    """Return an id as in the text of RFC-0035: a hash of ordinal, txid and transport."""
    return combine(koid, ordinal, txid)


class Direction:
    """The messages in one direction of a channel, as counted by one end.

    Args:
        synchronised: Whether the end has counted from the first message on.
    """

    __slots__ = ("anchor", "count", "disabled", "key", "opposite_key", "synchronised")

    def __init__(self, *, synchronised: bool) -> None:
        self.key = 0
        """The key of the direction's ids; 0: not known yet."""
        self.opposite_key = 0
        self.anchor = 0
        self.count = 0
        self.synchronised = synchronised
        self.disabled = False

    @property
    def used(self) -> bool:
        """Whether messages have been counted, or missed."""
        return bool(self.anchor or self.count or not self.synchronised)

    def advance(self, txid: int, answer: int = 0) -> int:
        """Count a message; return its index in its direction, or -1 if the index is unknown."""
        if txid and txid != self.anchor and not answer:
            self.anchor = txid
            self.count = 0
            self.synchronised = True
            return -1 if self.disabled else txid << 32
        self.count += 1
        if self.count > MAX_COUNT:
            self.synchronised = False
        if self.disabled or not self.synchronised:
            return -1
        return self.anchor << 32 | self.count

    def lose(self) -> None:
        """Handle a loss of messages: one-way messages get no id until the next anchor.

        The current anchor is deleted: the other end may have counted a lost message as a new
        anchor.
        """
        self.synchronised = False
        self.anchor = 0

    def disable(self) -> None:
        """Stop counting for good: other processes may use the channel, too."""
        self.disabled = True


class AnchoredIds:
    """Ids from transaction ids and counts; the module's docstring has the rules.

    Args:
        key: Returns the channel's key, which is the same at both ends; 0 while it is unknown.
        is_server: Whether this is the server's end.
        synchronised: Whether the channel is new: no message was sent or received on it yet.
    """

    __slots__ = ("_incoming", "_is_server", "_key", "_outgoing")

    def __init__(
        self, key: Callable[[], int], *, is_server: bool, synchronised: bool = True
    ) -> None:
        self._key = key
        self._is_server = is_server
        self._outgoing = Direction(synchronised=synchronised)
        self._incoming = Direction(synchronised=synchronised)

    @property
    def used(self) -> bool:
        """Whether messages were sent or received."""
        return self._outgoing.used or self._incoming.used

    def skip(self, outgoing: bool, kind: int, txid: int, answer: int = 0) -> int:
        """Implement `ChannelIds.skip`."""
        del kind
        return (self._outgoing if outgoing else self._incoming).advance(txid, answer)

    def next(self, outgoing: bool, kind: int, txid: int, ordinal: int, answer: int = 0) -> int:
        """Implement `ChannelIds.next`."""
        del ordinal
        direction = self._outgoing if outgoing else self._incoming
        index = direction.advance(txid, answer)
        if index < 0 or kind == CONTROL or not (direction.key or self._find_keys()):
            return 0
        if kind == REPLY and not answer:
            # A first reply has the id of its request, which belongs to the other direction.
            return flow_id(direction.opposite_key, txid << 32) or 1
        return flow_id(direction.key, index) or 1

    def lost(self, outgoing: bool) -> None:
        """Implement `ChannelIds.lost`."""
        (self._outgoing if outgoing else self._incoming).lose()

    def disable(self) -> None:
        """Implement `ChannelIds.disable`."""
        self._outgoing.disable()
        self._incoming.disable()

    def _find_keys(self) -> bool:
        key = self._key()
        if not key:
            return False
        to_server, to_client = combine(key, TO_SERVER), combine(key, TO_CLIENT)
        outgoing, incoming = self._outgoing, self._incoming
        up, down = (incoming, outgoing) if self._is_server else (outgoing, incoming)
        up.key, up.opposite_key = to_server, to_client
        down.key, down.opposite_key = to_client, to_server
        return True


class NumberedIds:
    """Ids made of (channel, number of the request, number of the reply).

    Args:
        key: Returns the channel's key, which is the same at both ends; 0 while it is unknown.
    """

    __slots__ = ("_key", "_stream_key")

    def __init__(self, key: Callable[[], int]) -> None:
        self._key = key
        self._stream_key = 0

    def next(self, outgoing: bool, kind: int, txid: int, ordinal: int, answer: int = 0) -> int:
        """Implement `ChannelIds.next`."""
        del outgoing, kind, ordinal
        if not txid or not (self._stream_key or self._find_key()):
            return 0
        request = flow_id(self._stream_key, txid)
        return (flow_id(mix64(request), answer) if answer else request) or 1

    def _find_key(self) -> bool:
        key = self._key()
        if key:
            self._stream_key = combine(key, TO_SERVER)
        return key != 0

    def skip(self, outgoing: bool, kind: int, txid: int, answer: int = 0) -> None:
        """Do nothing: messages are not counted."""

    def lost(self, outgoing: bool) -> None:
        """Do nothing: messages are not counted."""

    def disable(self) -> None:
        """Implement `ChannelIds.disable`."""
        self._stream_key = 0
        self._key = _no_key


def _no_key() -> int:
    return 0


class Rfc0035Ids:
    """Ids by `rfc0035` or `hashed`, with the lowest bits of the channel's key as koid.

    Args:
        key: Returns the channel's key, which is the same at both ends; 0 while it is unknown.
        recipe: `rfc0035` or `hashed`.
    """

    __slots__ = ("_disabled", "_key", "_recipe")

    def __init__(
        self, key: Callable[[], int], recipe: Callable[[int, int, int], int] = rfc0035
    ) -> None:
        self._key = key
        self._recipe = recipe
        self._disabled = False

    def next(self, outgoing: bool, kind: int, txid: int, ordinal: int, answer: int = 0) -> int:
        """Implement `ChannelIds.next`."""
        del outgoing, answer
        key = 0 if self._disabled or kind == CONTROL else self._key()
        return key and self._recipe(key, ordinal, txid) & U64

    def skip(self, outgoing: bool, kind: int, txid: int, answer: int = 0) -> None:
        """Do nothing: messages are not counted."""

    def lost(self, outgoing: bool) -> None:
        """Do nothing: messages are not counted."""

    def disable(self) -> None:
        """Implement `ChannelIds.disable`."""
        self._disabled = True
