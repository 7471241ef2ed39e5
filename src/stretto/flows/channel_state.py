"""What the tracer keeps of one end of a channel: its key, and who counts its messages."""

from __future__ import annotations

import weakref

from stretto.flows.channel_key import NoKeyError, channel_key
from stretto.flows.ids import AnchoredIds, NumberedIds, Rfc0035Ids, hashed, rfc0035

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.base.rpc_hooks import RpcChannel
    from stretto.flows.ids import FlowIds

SCHEMES = ("anchored", "hash", "rfc0035")


class ChannelState:
    """The state of one channel.

    Args:
        channel: Which; it holds this object, and so isn't held by it.
        scheme: One of `SCHEMES`, for channels that aren't numbered.
        synchronised: The first message is still to come.
        tcp: Name TCP connections by their addresses.
    """

    __slots__ = ("__weakref__", "_channel", "_key", "_tcp", "forked", "ids", "no_key", "used")

    def __init__(self, channel: RpcChannel, scheme: str, *, synchronised: bool, tcp: bool) -> None:
        self._channel = weakref.ref(channel)
        self._key = 0
        self._tcp = tcp
        self.used = not synchronised
        self.forked = False
        self.no_key = ""
        """Why there is no key, and won't be."""
        self.ids: FlowIds
        if channel.numbered:
            self.ids = NumberedIds(self.key)
        elif scheme == "anchored":
            self.ids = AnchoredIds(self.key, is_server=channel.is_server, synchronised=synchronised)
        else:
            self.ids = Rfc0035Ids(self.key, hashed if scheme == "hash" else rfc0035)

    def key(self) -> int:
        """The key of the channel, asked for when first needed; 0: there is none (yet)."""
        channel = self._channel()
        if self._key or self.no_key or channel is None:
            return self._key
        if channel.key:
            self._key = channel.key
            return self._key
        try:
            self._key = channel_key(channel.end, is_server=channel.is_server, tcp=self._tcp)
        except NoKeyError as error:
            if not error.later:
                self.no_key = error.reason
        return self._key

    def after_fork(self) -> None:
        """In the child: our parent may go on with what it has begun to use."""
        if self.used:
            self.forked = True
            self.ids.forsake()

    def why_not(self) -> str:
        """Why a message had no id."""
        if self.forked:
            return "forked"
        if self.no_key:
            return self.no_key
        return "not synchronised" if self._key else "not accepted"
