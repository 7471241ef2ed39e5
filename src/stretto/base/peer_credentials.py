"""The identity of the process at the other end of a unix socket (SO_PEERCRED)."""

from __future__ import annotations


class PeerCredentials:
    """The pid, uid and gids of the process that connected, as reported by the kernel.

    Attributes:
        groups: Its supplementary group ids.
    """

    __slots__ = ("gid", "groups", "pid", "uid")

    def __init__(self, pid: int, uid: int, gid: int, groups: tuple[int, ...] = ()) -> None:
        self.pid = pid
        self.uid = uid
        self.gid = gid
        self.groups = groups
