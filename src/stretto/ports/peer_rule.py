"""Who may be a consumer: it starts sessions, and reads what every producer wrote.

By default the service's own user, and root; the members of one group, if the
service is given one. The kernel says who is at the other end.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stretto.base.peer_credentials import PeerCredentials

ROOT = 0


class PeerRule:
    """Says whether a peer may connect.

    Args:
        group: Its members may, too.
        uid: The service's user, by default this process's.
    """

    __slots__ = ("_group", "_uid")

    def __init__(self, group: int | None = None, uid: int | None = None) -> None:
        self._group = group
        self._uid = os.geteuid() if uid is None else uid

    def __call__(self, peer: PeerCredentials) -> bool:
        if peer.uid in (ROOT, self._uid):
            return True
        return self._group is not None and self._group in (peer.gid, *peer.groups)
