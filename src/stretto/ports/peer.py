"""Who is at the other end of a connection, and on which machine.

Of a unix socket the kernel says it. Over TCP and vsock a peer says it itself, with one
SetPeerIdentity frame: the first one counts, and until then it is nobody in particular. What
it says there is a claim. It goes into the trace, and opens nothing.

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
"""Of a machine's name; the rest is cut off."""

_U32 = (1 << 32) - 1
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Peer:
    """The peer of one connection.

    Args:
        uid: Its user.
        pid: Its process; 0: unknown.
        address: Our end of a connection over a network; "": the kernel vouches for the peer.

    Attributes:
        machine_id: Its machine, 0 for this one (and for a peer that didn't introduce itself).
        machine_name: What that is called.
        is_remote: No memory can be shared with it, and nobody vouches for it.
    """

    __slots__ = ("_address", "_introduced", "machine_id", "machine_name", "pid", "uid")

    def __init__(self, uid: int = 0, pid: int = 0, address: str = "") -> None:
        self.uid = uid
        self.pid = pid
        self.machine_id = 0
        self.machine_name = ""
        self._address = address
        self._introduced = False

    @property
    def is_remote(self) -> bool:
        return bool(self._address)

    def introduce(self, identity: IPCFrame.SetPeerIdentity) -> None:
        """It says who it is. Ignored where the kernel does, and the second time."""
        if not self.is_remote or self._introduced:
            return
        self._introduced = True
        self.uid = identity.uid & _U32
        self.pid = identity.pid
        self.machine_id = machine_id(identity.machine_id_hint, self._address)
        self.machine_name = identity.machine_name[:MAX_NAME_CHARACTERS]


def peer_of(end: StreamSocket) -> Peer:
    """The peer of a connected socket."""
    credentials = end.peer_credentials()
    if credentials is None:
        return Peer(address=end.local_name)
    return Peer(credentials.uid, credentials.pid)


def machine_id(hint: str, address: str) -> int:
    """A machine's id: a hash of what it says it is, or of where its connection arrived.

    Args:
        hint: The same for every connection of a machine; "" if it says nothing.
        address: Our end of the connection, whose port doesn't count.
    """
    seed = hint or address.rpartition(":")[0]
    return fnv1a(seed.encode("utf-8", "surrogateescape")) & _U32 or 1


def machine_hint() -> str:
    """What tells this machine, since it was started, from every other one; "" if nothing does."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def own_identity() -> IPCFrame.SetPeerIdentity:
    """What this process says of itself to a service over a network."""
    return IPCFrame.SetPeerIdentity(
        pid=os.getpid(),
        uid=os.geteuid(),
        machine_id_hint=machine_hint(),
        machine_name=machine_name(),
    )


def machine_name() -> str:
    """What this machine is called in traces of others."""
    return os.environ.get(MACHINE_NAME_VARIABLE) or os.uname().sysname
