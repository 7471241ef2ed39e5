"""The rule for consumers: who may start sessions and read the data of every producer.

The permitted users are root and the service's own user, and the members of one group if it is
configured. The credentials are those reported by the kernel.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.base.peer_credentials import PeerCredentials

ROOT = 0


class PeerRule:
    """A rule for peers; a call returns whether the peer may connect.

    Args:
        group: Id of a group whose members may connect, too.
        uid: The service's user; by default the user of this process.
    """

    def __init__(self, group: int | None = None, uid: int | None = None) -> None:
        self._group = group
        self._uid = os.geteuid() if uid is None else uid

    def __call__(self, peer: PeerCredentials) -> bool:
        if peer.uid in (ROOT, self._uid):
            return True
        return self._group is not None and self._group in (peer.gid, *peer.groups)
