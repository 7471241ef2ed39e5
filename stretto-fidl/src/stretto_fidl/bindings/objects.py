"""Objects behind handles: channels, memory, events.

What Zircon's kernel has, as Linux has it: a channel is a pair of sockets that
keep messages apart, a VMO is anonymous memory, an event is an eventfd.
"""

from __future__ import annotations

import os
import socket
import stat
from typing import Self

from stretto_fidl.codec.handle import ANY, CHANNEL, EVENT, VMO, Handle


class ChannelEnd(Handle):
    """One end of a channel.

    Args:
        fd: As of every handle.
        object_type: As of every handle.
        rights: As of every handle.
        used: Messages may have gone through it already, as far as its owner knows: it came in a
            message, or was inherited. Who counts messages (flows) needs to know.
    """

    __slots__ = ("used",)

    def __init__(
        self,
        fd: int,
        object_type: int = CHANNEL,
        rights: int | None = None,
        *,
        used: bool = True,
    ) -> None:
        super().__init__(fd, object_type, rights)
        self.used = used


def channel() -> tuple[ChannelEnd, ChannelEnd]:
    """Make both ends of a channel."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return ChannelEnd(one.detach(), used=False), ChannelEnd(other.detach(), used=False)


class Vmo(Handle):
    """Memory that can be shared."""

    __slots__ = ()

    def __init__(self, fd: int, object_type: int = VMO, rights: int | None = None) -> None:
        super().__init__(fd, object_type, rights)

    @classmethod
    def create(cls, data: bytes = b"", *, size: int = 0, name: str = "fidl-vmo") -> Self:
        """Make one.

        Args:
            data: What it begins with.
            size: In bytes; at least that of the data.
            name: In the listings of the system.
        """
        vmo = cls(os.memfd_create(name, os.MFD_CLOEXEC))
        os.ftruncate(vmo.fd, max(size, len(data)))
        vmo.write(data)
        return vmo

    @property
    def size(self) -> int:
        """In bytes."""
        return os.fstat(self.fd).st_size

    def read(self, size: int | None = None, offset: int = 0) -> bytes:
        """Read bytes, by default all from the offset on."""
        wanted = self.size - offset if size is None else size
        return os.pread(self.fd, max(wanted, 0), offset)

    def write(self, data: bytes, offset: int = 0) -> None:
        """Write all bytes; the memory grows if need be."""
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self.fd, rest, offset)
            rest, offset = rest[written:], offset + written


class Event(Handle):
    """Something that happens: it is signalled, or not yet."""

    __slots__ = ()

    def __init__(self, fd: int, object_type: int = EVENT, rights: int | None = None) -> None:
        super().__init__(fd, object_type, rights)

    @classmethod
    def create(cls) -> Self:
        """Make one that isn't signalled."""
        return cls(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))

    def signal(self) -> None:
        """Signal it: its descriptor gets readable."""
        os.eventfd_write(self.fd, 1)

    def clear(self) -> bool:
        """Take the signal back, and tell whether there was one."""
        try:
            return os.eventfd_read(self.fd) > 0
        except BlockingIOError:
            return False


def adopt(fd: int) -> Handle:
    """Own a descriptor that came with a message, as the object that it seems to be.

    Sockets are channels, memory files are VMOs, eventfds are events, anything else is a plain
    handle of any type.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        return ChannelEnd(fd)
    target = os.readlink(f"/proc/self/fd/{fd}")
    if stat.S_ISREG(mode) and target.startswith("/memfd:"):
        return Vmo(fd)
    if target == "anon_inode:[eventfd]":
        return Event(fd)
    return Handle(fd, ANY)
