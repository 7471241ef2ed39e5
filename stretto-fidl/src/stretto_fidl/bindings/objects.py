"""Objects that handles refer to: channels, memory, events.

Zircon's objects on Linux: a channel is a pair of sockets that preserve message
boundaries, a VMO is anonymous memory, an event is an eventfd.
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
        fd: The descriptor, as in `Handle`.
        object_type: The type of the object, as in `Handle`.
        rights: The rights of the owner, as in `Handle`.
        used: Whether messages may have been sent through this end already, because the end was
            received in a message or inherited. Flow tracing needs this, because it counts messages.
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
    """Create a channel, and return its two ends."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return ChannelEnd(one.detach(), used=False), ChannelEnd(other.detach(), used=False)


class Vmo(Handle):
    """A VMO: memory that programs can share."""

    __slots__ = ()

    def __init__(self, fd: int, object_type: int = VMO, rights: int | None = None) -> None:
        super().__init__(fd, object_type, rights)

    @classmethod
    def create(cls, data: bytes = b"", *, size: int = 0, name: str = "fidl-vmo") -> Self:
        """Create a VMO.

        Args:
            data: The first contents.
            size: The size in bytes, at least that of the data.
            name: The name of the memory in /proc.
        """
        vmo = cls(os.memfd_create(name, os.MFD_CLOEXEC))
        os.ftruncate(vmo.fd, max(size, len(data)))
        vmo.write(data)
        return vmo

    @property
    def size(self) -> int:
        """The size in bytes."""
        return os.fstat(self.fd).st_size

    def read(self, size: int | None = None, offset: int = 0) -> bytes:
        """Read `size` bytes at an offset; by default all bytes from the offset on."""
        wanted = self.size - offset if size is None else size
        return os.pread(self.fd, max(wanted, 0), offset)

    def write(self, data: bytes, offset: int = 0) -> None:
        """Write all bytes. The memory grows if necessary."""
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self.fd, rest, offset)
            rest, offset = rest[written:], offset + written


class Event(Handle):
    """An event object. It is either signalled or not."""

    __slots__ = ()

    def __init__(self, fd: int, object_type: int = EVENT, rights: int | None = None) -> None:
        super().__init__(fd, object_type, rights)

    @classmethod
    def create(cls) -> Self:
        """Create an event that isn't signalled."""
        return cls(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))

    def signal(self) -> None:
        """Signal the event: its descriptor becomes readable."""
        os.eventfd_write(self.fd, 1)

    def clear(self) -> bool:
        """Clear the signal, and return whether the event was signalled."""
        try:
            return os.eventfd_read(self.fd) > 0
        except BlockingIOError:
            return False


def adopt(fd: int) -> Handle:
    """Make a handle for a received descriptor, by the type of its file.

    Sockets are channels, memory files are VMOs, eventfds are events, and any other file is a plain
    `Handle` with the type `ANY`.
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
