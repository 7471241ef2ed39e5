"""Flow ids that both ends of a channel compute alone.

`AnchoredIds`, the default. Per direction of a channel:

    (anchor, count)      the last transaction id seen, and the messages since then
    new txid             anchor = txid, count = 0
    no txid, or an       count += 1
    answer's sequel
    id = flow_id(key of the direction, anchor << 32 | count)

and a first reply has the id of its request, whatever its place. So:

- No two messages of a direction share an id, but a request with its reply.
- Two-way messages rest on their txid alone. One-way messages rest on the last two-way message and a
  small count: an end that has missed some messages gives them no id until the next
  two-way message sets both ends right. An end that missed some without knowing may name
  a few messages wrongly until then, no more.
- Nobody who writes in two processes at once can be counted: see `Direction.forsake`.

`NumberedIds`: for protocols that number each request, one-ways too (Perfetto's IPC).
Nothing is counted, nothing can be lost.

`Rfc0035Ids` and `HashIds` are Fuchsia's RFC-0035, the example and the prose. Both rest on the
txid alone: every one-way message of a method has the same id, and the example's ids repeat
after 256 transactions. They are there for comparison and for traces that shall match other
implementations of the RFC. The RFC's expression is meant as `rfc0035`; read with the
precedence of C and Python, `koid & 0xFFFF << 48 | …` keeps the *top* 16 bits of the koid, which are
all zero: the channel would drop out.

All ids are 64 bits; 0 means: no flow.

What counts, while a program runs, is `stretto.flows.native.FlowIds`, in C: `AnchoredIds` and
`NumberedIds` say what it has to do, and the tests compare them.
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
            """Count a message, under the lock that orders its direction; its id, or 0.

            Args:
                outgoing: We wrote it.
                kind: As in `stretto.base.rpc_hooks`.
                txid: Its transaction, or 0.
                ordinal: Its method.
                answer: How many replies of its request came before.
            """

        def skip(self, outgoing: bool, kind: int, txid: int, answer: int = 0) -> object:
            """Count a message that needs no id."""

        def lost(self, outgoing: bool) -> None:
            """Messages went uncounted."""

        def forsake(self) -> None:
            """Others may write or read here, too: never give an id again."""


MAX_COUNT = 0xFFFFFFFF
"""Messages after one anchor: then there are no ids until the next."""

TO_SERVER = 1
TO_CLIENT = 2


def rfc0035(koid: int, ordinal: int, txid: int) -> int:
    """The RFC's example as it is meant: koid, 16 bits; ordinal, 32; eight zeros; txid, 8."""
    return ((koid & 0xFFFF) << 48) | ((ordinal & 0xFFFFFFFF) << 16) | (txid & 0xFF)


def hashed(koid: int, ordinal: int, txid: int) -> int:
    """The RFC's prose: a hash, not cryptographic, of ordinal, transaction and transport."""
    return combine(koid, ordinal, txid)


class Direction:
    """The messages of a channel that go one way, as one of its ends counts them.

    Args:
        synchronised: The end has counted from the very first message on.
    """

    __slots__ = ("anchor", "count", "forsaken", "key", "opposite_key", "synchronised")

    def __init__(self, *, synchronised: bool) -> None:
        self.key = 0
        """Of its ids; 0: not known yet."""
        self.opposite_key = 0
        self.anchor = 0
        self.count = 0
        self.synchronised = synchronised
        self.forsaken = False

    @property
    def used(self) -> bool:
        """Messages have been counted, or gone by uncounted."""
        return bool(self.anchor or self.count or not self.synchronised)

    def advance(self, txid: int, answer: int = 0) -> int:
        """Count a message; its index in the direction's stream, or -1: not known."""
        if txid and txid != self.anchor and not answer:
            self.anchor = txid
            self.count = 0
            self.synchronised = True
            return -1 if self.forsaken else txid << 32
        self.count += 1
        if self.count > MAX_COUNT:
            self.synchronised = False
        if self.forsaken or not self.synchronised:
            return -1
        return self.anchor << 32 | self.count

    def lose(self) -> None:
        """Messages went uncounted: one-ways have no id until the next anchor.

        The anchor is forgotten as well: what was lost may have anchored the other end.
        """
        self.synchronised = False
        self.anchor = 0

    def forsake(self) -> None:
        """Other processes may write or read here too: the count means nothing any more."""
        self.forsaken = True


class AnchoredIds:
    """See the module's head.

    Args:
        key: Gives the channel's key, the same at both ends; 0 while it is not known.
        is_server: Which end we are.
        synchronised: Nothing was sent or received before.
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
        """Messages went through."""
        return self._outgoing.used or self._incoming.used

    def skip(self, outgoing: bool, kind: int, txid: int, answer: int = 0) -> int:
        """See `ChannelIds`."""
        del kind
        return (self._outgoing if outgoing else self._incoming).advance(txid, answer)

    def next(self, outgoing: bool, kind: int, txid: int, ordinal: int, answer: int = 0) -> int:
        """See `ChannelIds`."""
        del ordinal
        direction = self._outgoing if outgoing else self._incoming
        index = direction.advance(txid, answer)
        if index < 0 or kind == CONTROL or not (direction.key or self._find_keys()):
            return 0
        if kind == REPLY and not answer:  # its request's, which went the other way
            return flow_id(direction.opposite_key, txid << 32) or 1
        return flow_id(direction.key, index) or 1

    def lost(self, outgoing: bool) -> None:
        """See `ChannelIds`."""
        (self._outgoing if outgoing else self._incoming).lose()

    def forsake(self) -> None:
        """See `ChannelIds`."""
        self._outgoing.forsake()
        self._incoming.forsake()

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
    """Ids of (channel, number of the request, number of the answer).

    Args:
        key: As of `AnchoredIds`.
    """

    __slots__ = ("_key", "_stream_key")

    def __init__(self, key: Callable[[], int]) -> None:
        self._key = key
        self._stream_key = 0

    def next(self, outgoing: bool, kind: int, txid: int, ordinal: int, answer: int = 0) -> int:
        """See `ChannelIds`."""
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
        """Nothing rests on a count."""

    def lost(self, outgoing: bool) -> None:
        """Nothing rests on a count."""

    def forsake(self) -> None:
        """See `ChannelIds`."""
        self._stream_key = 0
        self._key = _no_key


def _no_key() -> int:
    return 0


class Rfc0035Ids:
    """`rfc0035` of the lowest bits of the channel's key.

    Args:
        key: As of `AnchoredIds`.
        recipe: `rfc0035` or `hashed`.
    """

    __slots__ = ("_forsaken", "_key", "_recipe")

    def __init__(
        self, key: Callable[[], int], recipe: Callable[[int, int, int], int] = rfc0035
    ) -> None:
        self._key = key
        self._recipe = recipe
        self._forsaken = False

    def next(self, outgoing: bool, kind: int, txid: int, ordinal: int, answer: int = 0) -> int:
        """See `ChannelIds`."""
        del outgoing, answer
        key = 0 if self._forsaken or kind == CONTROL else self._key()
        return key and self._recipe(key, ordinal, txid) & U64

    def skip(self, outgoing: bool, kind: int, txid: int, answer: int = 0) -> None:
        """Nothing rests on a count."""

    def lost(self, outgoing: bool) -> None:
        """Nothing rests on a count."""

    def forsake(self) -> None:
        """See `ChannelIds`."""
        self._forsaken = True
