"""Sockets opened by a service manager for this process (systemd's socket activation).

    LISTEN_PID=<our pid>  LISTEN_FDS=2  LISTEN_FDNAMES=producer:consumer

The descriptors start at 3. The name of a socket (`FileDescriptorName=` of the unit, else the unit's
name) defines its use: a name with "consumer" is for consumers, a name with "producer" for
producers.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError
from stretto.base.unix_socket import UnixListener

if TYPE_CHECKING:
    from collections.abc import MutableMapping

FIRST_FD = 3
VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
KINDS = ("producer", "consumer")


def activated_names(environment: MutableMapping[str, str]) -> list[str]:
    """Return the names of the sockets opened for this process; empty if there are none.

    The environment variables are removed, because they are not valid for child processes.

    Raises:
        CommandError: the variables are malformed.
    """
    pid, count, names = (environment.pop(name, "") for name in VARIABLES)
    if pid != str(os.getpid()):
        return []
    found = names.split(":")
    if not count.isdecimal() or len(found) != int(count):
        raise CommandError(
            f"traced: LISTEN_FDS={count!r} and LISTEN_FDNAMES={names!r} don't agree: "
            "name each socket of the unit with FileDescriptorName=producer or consumer."
        )
    return found


def activated_sockets(environment: MutableMapping[str, str]) -> dict[str, list[UnixListener]]:
    """Return the sockets that a service manager has opened for this process, by kind.

    Raises:
        CommandError: the name of a socket doesn't define its use.
        TransportError: a descriptor isn't a listening socket.
    """
    sockets: dict[str, list[UnixListener]] = {kind: [] for kind in KINDS}
    for fd, name in enumerate(activated_names(environment), FIRST_FD):
        kind = [each for each in KINDS if each in name]
        if len(kind) != 1:
            raise CommandError(
                f"traced: the service manager passes a socket named {name!r}: "
                "set FileDescriptorName= to producer or consumer."
            )
        sockets[kind[0]].append(UnixListener.adopt(fd))
    return sockets
