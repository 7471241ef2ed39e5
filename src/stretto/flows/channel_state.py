"""What the tracer keeps of one end of a channel: its key, and who counts its messages."""

from __future__ import annotations

import weakref

from stretto.flows.channel_key import NoKeyError, channel_key
from stretto.flows.ids import Rfc0035Ids, hashed, rfc0035
from stretto.flows.native import FlowIds
from stretto.flows.shared_ids import SharedIds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap

    from stretto.base.rpc_hooks import RpcChannel
    from stretto.flows.ids import ChannelIds

SCHEMES = ("anchored", "hash", "rfc0035")


class _LazyKey:
    """The key of a channel, asked for when first needed."""

    __slots__ = ("_channel", "_never", "_tcp", "reason", "value")

    def __init__(self, channel: RpcChannel, *, tcp: bool) -> None:
        # The channel holds us.
        self._channel = weakref.ref(channel)
        self._tcp = tcp
        self.value = 0
        self.reason = ""
        """Why there is no key."""
        self._never = False
        """There won't be one either."""

    def __call__(self) -> int:
        """The key; 0: there is none (yet)."""
        channel = self._channel()
        if channel is not None and channel.key:
            # Even if the kernel was asked before: what both ends agreed on comes later.
            self.value = channel.key
        if self.value or self._never or channel is None:
            return self.value
        try:
            self.value = channel_key(channel.end, is_server=channel.is_server, tcp=self._tcp)
        except NoKeyError as error:
            self.reason = error.reason
            self._never = not error.later
        return self.value


class ChannelState:
    """The state of one channel.

    Args:
        owner: Who made it.
        channel: Which; it holds this object.
        scheme: One of `SCHEMES`, for channels that aren't numbered.
        synchronised: The first message is still to come.
        tcp: Name TCP connections by their addresses.
    """

    __slots__ = ("__weakref__", "_key", "_used", "forked", "ids", "owner")

    def __init__(
        self, owner: object, channel: RpcChannel, scheme: str, *, synchronised: bool, tcp: bool
    ) -> None:
        self.owner = owner
        self._key = _LazyKey(channel, tcp=tcp)
        self._used = not synchronised
        self.forked = False
        self.ids: ChannelIds
        if channel.numbered or scheme == "anchored":
            self.ids = FlowIds(
                self._key,
                owner,
                is_server=channel.is_server,
                synchronised=synchronised,
                numbered=channel.numbered,
            )
        else:
            self.ids = Rfc0035Ids(self._key, hashed if scheme == "hash" else rfc0035)

    def use(self) -> None:
        """A message goes through; the ids may have seen some, too."""
        self._used = True

    @property
    def used(self) -> bool:
        """Messages went through, or may have."""
        return self._used or (type(self.ids) is FlowIds and self.ids.used)

    def find_key(self) -> None:
        """Ask for the key now: later the peer may have gone."""
        self._key()

    @property
    def wants_flag(self) -> bool:
        """Whether it has to be shared at the next fork: what wasn't used is the child's own."""
        return self.used and not isinstance(self.ids, SharedIds)

    def before_fork(self, flags: mmap, index: int) -> None:
        """Parent and child will both have the channel; they tell each other by a flag."""
        self._used = True
        self.ids = SharedIds(self, flags, index)

    def after_fork_in_child(self) -> None:
        """Our parent may go on with what it has begun to use."""
        if isinstance(self.ids, SharedIds):
            self.ids.in_child = True
            self.forked = True
            self.ids.forsake()

    def after_fork_in_parent(self) -> None:
        """Our child may say something before its flag is seen: the peer counts it."""
        if isinstance(self.ids, SharedIds):
            self.ids.lost(True)
            self.ids.lost(False)

    def why_not(self) -> str:
        """Why a message had no id."""
        if self.forked:
            return "forked"
        if not self._key():
            return self._key.reason or "not connected"
        return "not synchronised"
