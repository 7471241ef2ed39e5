"""The identity of a connection's peer: its user, process and machine.

On a unix socket the kernel reports the identity. Over TCP and vsock the peer sends its identity in
a SetPeerIdentity frame. Only the first such frame is used; until then the identity is empty. This
identity is not verified: it is written into the trace, but grants no permission.

Source: docs/formats/ipc.md, "Peer identity".
"""

from __future__ import annotations

import os

from stretto.base.hashes import fnv1a
from stretto.protos.ipc import IPCFrame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.base.stream_socket import StreamSocket

MACHINE_NAME_VARIABLE = "PERFETTO_MACHINE_NAME"
MAX_NAME_CHARACTERS = 256
"""Longest name of a machine; longer ones are cut off."""

_U32 = (1 << 32) - 1
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Peer:
    """The peer of one connection.

    Args:
        uid: User id.
        pid: Process id; 0 if unknown.
        address: Local address of a network connection; "" for unix sockets, whose credentials are
            verified.

    Attributes:
        machine_id: Id of the peer's machine; 0 for this machine, and before a SetPeerIdentity
            frame.
        machine_name: Name of the peer's machine.
        is_remote: Whether the peer is connected over a network: memory can't be shared with such a
            peer, and its identity is not verified.
    """

    def __init__(self, uid: int = 0, pid: int = 0, address: str = "") -> None:
        self.uid = uid
        self.pid = pid
        self.machine_id = 0
        self.machine_name = ""
        self._address = address
        self._has_identity = False

    @property
    def is_remote(self) -> bool:
        return bool(self._address)

    def set_identity(self, identity: IPCFrame.SetPeerIdentity) -> None:
        """Set the identity of a remote peer. Ignored for unix sockets and after the first call."""
        if not self.is_remote or self._has_identity:
            return
        self._has_identity = True
        self.uid = identity.uid & _U32
        self.pid = identity.pid
        self.machine_id = machine_id(identity.machine_id_hint, self._address)
        self.machine_name = identity.machine_name[:MAX_NAME_CHARACTERS]


def peer_of(end: StreamSocket) -> Peer:
    """Return the peer of a connected socket."""
    credentials = end.peer_credentials()
    if credentials is None:
        return Peer(address=end.local_name)
    return Peer(credentials.uid, credentials.pid)


def machine_id(hint: str, address: str) -> int:
    """Return the id of a machine: a hash of `hint`, or of the connection's local address.

    Args:
        hint: A string that is the same for all connections of a machine; "" if unknown.
        address: Local address of the connection; its port is ignored.
    """
    seed = hint or address.rpartition(":")[0]
    return fnv1a(seed.encode("utf-8", "surrogateescape")) & _U32 or 1


def machine_hint() -> str:
    """Return the boot id, which is unique to this machine since its start; "" if unknown."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def own_identity() -> IPCFrame.SetPeerIdentity:
    """Return the identity that this process sends to a service over a network."""
    return IPCFrame.SetPeerIdentity(
        pid=os.getpid(),
        uid=os.geteuid(),
        machine_id_hint=machine_hint(),
        machine_name=machine_name(),
    )


def machine_name() -> str:
    """Return the name of this machine for traces of other machines."""
    return os.environ.get(MACHINE_NAME_VARIABLE) or os.uname().sysname
