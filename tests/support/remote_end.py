"""Makes a local connection look like one over a network."""

from __future__ import annotations

import os
import socket

from stretto.base.stream_socket import StreamSocket

ADDRESS = "192.0.2.1:1"


class RemoteEnd(StreamSocket):
    """A stream socket that reports no credentials of its peer."""

    __slots__ = ()

    @property
    def local_name(self) -> str:
        return ADDRESS


def remote_end(end: StreamSocket) -> RemoteEnd:
    """Make a RemoteEnd from a connected socket, and close the original socket."""
    remote = RemoteEnd(socket.socket(fileno=os.dup(end.fileno())))
    end.close()
    return remote
