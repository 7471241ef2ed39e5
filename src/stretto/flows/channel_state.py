"""The tracer's state of one end of a channel: its key, and the counter of its messages."""

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
    """The key of a channel, determined at its first use."""

    __slots__ = ("_channel", "_never", "_tcp", "reason", "value")

    def __init__(self, channel: RpcChannel, *, tcp: bool) -> None:
        self._channel = weakref.ref(channel)  # Weak, because the channel refers to this state.
        self._tcp = tcp
        self.value = 0
        self.reason = ""
        """Why there is no key; "" if there is one."""
        self._never = False
        """Whether later attempts can't succeed either."""

    def __call__(self) -> int:
        """Return the key; 0 if there is none (yet)."""
        channel = self._channel()
        if channel is not None and channel.key:
            # A key on which the ends have agreed, even later, replaces the key from the kernel.
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
        owner: The tracer that made it.
        channel: The channel, which refers to this object.
        scheme: One of `SCHEMES`; used unless the messages of the channel are numbered.
        synchronised: Whether the channel is new: no message was sent or received on it yet.
        tcp: Whether to identify TCP connections by their addresses.
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
        """Mark the channel as used: a message is sent or received."""
        self._used = True

    @property
    def used(self) -> bool:
        """Whether the channel has, or may have, transported messages."""
        return self._used or (type(self.ids) is FlowIds and self.ids.used)

    def find_key(self) -> None:
        """Determine the key now. It can't be determined after the peer has disconnected."""
        self._key()

    @property
    def needs_flag(self) -> bool:
        """Whether a fork must share a new flag with the child.

        The child sets the flag when it uses the channel. A channel that was never used needs none.
        """
        return self.used and not isinstance(self.ids, SharedIds)

    def before_fork(self, flags: mmap, index: int) -> None:
        """Share a flag with the child, which sets the flag when it uses the channel."""
        self._used = True
        self.ids = SharedIds(self, flags, index)

    def after_fork_in_child(self) -> None:
        """Stop computing ids: the parent may continue to use the channel."""
        if isinstance(self.ids, SharedIds):
            self.ids.in_child = True
            self.forked = True
            self.ids.disable()

    def after_fork_in_parent(self) -> None:
        """Mark messages as lost: the child may have sent some that this process doesn't count."""
        if isinstance(self.ids, SharedIds):
            self.ids.lost(True)
            self.ids.lost(False)

    def missing_id_reason(self) -> str:
        """Return why a message has no id."""
        if self.forked:
            return "forked"
        if not self._key():
            return self._key.reason or "not connected"
        return "not synchronised"
