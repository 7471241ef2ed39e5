"""The identity of the process at the other end of a unix socket (SO_PEERCRED)."""

from __future__ import annotations


class PeerCredentials:
    """The process that connected, as the kernel names it.

    Attributes:
        groups: Ids of its groups besides `gid`.
    """

    __slots__ = ("gid", "groups", "pid", "uid")

    def __init__(self, pid: int, uid: int, gid: int, groups: tuple[int, ...] = ()) -> None:
        self.pid = pid
        self.uid = uid
        self.gid = gid
        self.groups = groups
