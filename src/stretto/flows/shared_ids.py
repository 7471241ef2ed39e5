"""Ids of a channel that parent and child share after a fork.

    parent  ids -> [SharedIds] -> ids           reads the flag before each message
                        |
                     a byte of shared memory    set: the child uses the channel, too
                        |
    child   ids -> [SharedIds] -> no ids        sets the flag with its first message

Usually the child doesn't use its parent's channels, and the parent continues with its ids. If the
child does use such a channel, the peer counts the messages of both processes together. Then no
process can compute ids, and all further messages of the channel have no ids.

The parent may send messages in the microseconds between the child's first message and its flag.
These messages may get wrong ids: counting can't distinguish the messages of two processes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mmap import mmap
    from typing import Protocol

    from stretto.flows.ids import ChannelIds

    class SharedState(Protocol):
        """The members of a `ChannelState` that `SharedIds` uses."""

        forked: bool
        ids: ChannelIds


class SharedIds:
    """The ids of a shared channel; see the module's docstring and `ChannelIds`.

    Args:
        state: The state of the channel. Its `forked` becomes true when both processes use the
            channel.
        flags: Shared memory with a byte for each channel.
        index: The index of this channel's byte.

    Attributes:
        ids: The ids used until the fork.
        in_child: Whether this is the child.
    """

    __slots__ = ("_flags", "_index", "_state", "ids", "in_child")

    def __init__(self, state: SharedState, flags: mmap, index: int) -> None:
        self._state = state
        self._flags = flags
        self._index = index
        self.ids: ChannelIds = state.ids
        self.in_child = False

    def next(self, outgoing: bool, kind: int, txid: int, ordinal: int, answer: int = 0) -> int:
        """Implement `ChannelIds.next`."""
        self._look()
        return self.ids.next(outgoing, kind, txid, ordinal, answer)

    def skip(self, outgoing: bool, kind: int, txid: int, answer: int = 0) -> object:
        """Implement `ChannelIds.skip`."""
        self._look()
        return self.ids.skip(outgoing, kind, txid, answer)

    def lost(self, outgoing: bool) -> None:
        """Implement `ChannelIds.lost`."""
        self.ids.lost(outgoing)

    def disable(self) -> None:
        """Implement `ChannelIds.disable`."""
        self.ids.disable()

    def _look(self) -> None:
        if self.in_child:
            self._flags[self._index] = 1
        elif self._flags[self._index] and not self._state.forked:
            self._state.forked = True
            self.ids.disable()
