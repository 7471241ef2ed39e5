"""Handles. A message consists of bytes and handles.

On Linux a handle is a file descriptor. The bytes of a message say where its handles belong; the
handles are sent beside the bytes, in the order of a depth-first traversal of the value. For each
handle the sender states the type and the rights to transfer (`HandleDisposition`). The receiver
compares type and rights with its definition, drops excess rights, and closes the handles of a
message that it refuses.
"""

from __future__ import annotations

import os
from typing import Final, Self

from stretto_fidl.codec.wire_error import (
    HANDLE_CLOSED,
    INCORRECT_HANDLE_TYPE,
    MISSING_REQUIRED_HANDLE_RIGHTS,
    WireError,
)

SAME_RIGHTS: Final = 1 << 31
"""The value of `rights` that keeps all rights of a handle."""

RIGHTS: Final = {
    name: 1 << bit
    for bit, name in enumerate(
        "duplicate transfer read write execute map get_property set_property enumerate destroy "
        "set_policy get_policy signal signal_peer wait inspect manage_job manage_process "
        "manage_thread apply_profile manage_socket op_children resize attach_vmo".split()
    )
}
"""Zircon's rights by name."""

BASIC_RIGHTS: Final = RIGHTS["transfer"] | RIGHTS["duplicate"] | RIGHTS["wait"] | RIGHTS["inspect"]
IO_RIGHTS: Final = RIGHTS["read"] | RIGHTS["write"]

OBJECT_TYPES: Final = {
    "handle": 0, "process": 1, "thread": 2, "vmo": 3, "channel": 4, "event": 5, "port": 6,
    "interrupt": 9, "pci_device": 11, "debuglog": 12, "socket": 14, "resource": 15,
    "eventpair": 16, "job": 17, "vmar": 18, "fifo": 19, "guest": 20, "vcpu": 21, "timer": 22,
    "iommu": 23, "bti": 24, "profile": 25, "pmt": 26, "suspend_token": 27, "pager": 28,
    "exception": 29, "clock": 30, "stream": 31, "msi": 32,
}  # fmt: skip
"""Zircon's object types by name; `handle` stands for any type."""

ANY: Final = 0
VMO: Final = OBJECT_TYPES["vmo"]
CHANNEL: Final = OBJECT_TYPES["channel"]
EVENT: Final = OBJECT_TYPES["event"]
SOCKET: Final = OBJECT_TYPES["socket"]

DEFAULT_RIGHTS: Final = {
    CHANNEL: (BASIC_RIGHTS & ~RIGHTS["duplicate"])
    | IO_RIGHTS
    | RIGHTS["signal"]
    | RIGHTS["signal_peer"],
    EVENT: BASIC_RIGHTS | RIGHTS["signal"],
    VMO: BASIC_RIGHTS
    | IO_RIGHTS
    | RIGHTS["map"]
    | RIGHTS["get_property"]
    | RIGHTS["set_property"]
    | RIGHTS["signal"],
}
"""The rights of a new object, by type."""


def type_name(object_type: int) -> str:
    """Return the name of an object type, for error messages."""
    names = [name for name, value in OBJECT_TYPES.items() if value == object_type]
    return names[0] if names else f"object type {object_type}"


class Handle:
    """Owns a file descriptor that FIDL messages can carry.

    The owner of a handle closes the descriptor: by `close`, by a `with` block, or by sending the
    handle, because a sent message owns its handles. The descriptor is also closed when the last
    reference to the handle is dropped.

    Args:
        fd: The descriptor; the handle closes it.
        object_type: One of `OBJECT_TYPES`.
        rights: The rights of the owner, which the kernel does not enforce. None takes the
            rights of a new object of the type.
    """

    __slots__ = ("_fd", "object_type", "rights")

    def __init__(self, fd: int, object_type: int = ANY, rights: int | None = None) -> None:
        self._fd = fd
        self.object_type = object_type
        self.rights = DEFAULT_RIGHTS.get(object_type, SAME_RIGHTS) if rights is None else rights

    @property
    def fd(self) -> int:
        """The descriptor. The handle still owns it.

        Raises:
            WireError: The handle is closed or detached.
        """
        if self._fd < 0:
            raise WireError(HANDLE_CLOSED, "the handle is closed, or was sent already")
        return self._fd

    @property
    def is_open(self) -> bool:
        """Whether the handle is neither closed nor detached."""
        return self._fd >= 0

    def fileno(self) -> int:
        """Return the descriptor; the module `selectors` calls this method."""
        return self.fd

    def detach(self) -> int:
        """Return the descriptor without closing it; the caller has to close it."""
        fd, self._fd = self.fd, -1
        return fd

    def close(self) -> None:
        """Close the descriptor. A second call does nothing."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def duplicate(self) -> Handle:
        """Return a second handle of the same object."""
        return type(self)(os.dup(self.fd), self.object_type, self.rights)

    def restrict(self, rights: int) -> None:
        """Remove all rights that are not in `rights`; `SAME_RIGHTS` removes none."""
        if not rights & SAME_RIGHTS:
            self.rights = rights if self.rights & SAME_RIGHTS else self.rights & rights

    def check(self, object_type: int, rights: int) -> None:
        """Check that the handle has a type and at least some rights; drop its other rights.

        Raises:
            WireError: The handle has another type, or lacks some of the rights.
        """
        if object_type not in (ANY, self.object_type):
            expected, found = type_name(object_type), type_name(self.object_type)
            raise WireError(INCORRECT_HANDLE_TYPE, f"the handle is a {found}, not a {expected}")
        if rights & SAME_RIGHTS:
            return
        missing = 0 if self.rights & SAME_RIGHTS else rights & ~self.rights
        if missing:
            names = ", ".join(name for name, bit in RIGHTS.items() if bit & missing)
            problem = f"the handle lacks rights: {names or hex(missing)}"
            raise WireError(MISSING_REQUIRED_HANDLE_RIGHTS, problem)
        self.restrict(rights)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except OSError:
            pass  # The descriptor may be closed already: a daemon closes all inherited descriptors.

    def __repr__(self) -> str:
        state = f"fd {self._fd}" if self._fd >= 0 else "closed"
        return f"<{type(self).__name__} {type_name(self.object_type)} {state}>"


class HandleDisposition:
    """A handle to send, with the type and the rights to transfer.

    Args:
        handle: The handle. Once the handle has been sent, the message owns it.
        object_type: The type that the receiver expects.
        rights: The rights that the receiver gets; `SAME_RIGHTS` keeps them.
    """

    __slots__ = ("handle", "object_type", "rights")

    def __init__(self, handle: Handle, object_type: int = ANY, rights: int = SAME_RIGHTS) -> None:
        self.handle = handle
        self.object_type = object_type
        self.rights = rights

    def transfer(self) -> Handle:
        """Check the handle, as a transport does before sending, and return it.

        Raises:
            WireError: The handle has another type, or too few rights.
        """
        self.handle.check(self.object_type, self.rights)
        return self.handle

    def __repr__(self) -> str:
        return (
            f"HandleDisposition({self.handle!r}, {type_name(self.object_type)}, {self.rights:#x})"
        )
