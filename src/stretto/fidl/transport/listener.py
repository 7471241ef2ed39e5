"""Channels between programs: by a socket in the file system."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Self

from stretto.base.errors import TransportError
from stretto.fidl.bindings.objects import ChannelEnd

if TYPE_CHECKING:
    from pathlib import Path


def _kind(stream: bool) -> int:
    return socket.SOCK_STREAM if stream else socket.SOCK_SEQPACKET


def connect(path: str | Path, *, stream: bool = False) -> ChannelEnd:
    """Connect to a server.

    Args:
        path: Of its socket.
        stream: Its listener is of the kind that doesn't keep messages apart.

    Raises:
        TransportError: Nobody listens there.
    """
    with socket.socket(socket.AF_UNIX, _kind(stream)) as own:
        try:
            own.connect(str(path))
        except OSError as error:
            raise TransportError(f"can't connect to {path}: {error}") from error
        return ChannelEnd(own.detach(), used=False)


class Listener:
    """A socket that clients connect to.

    Args:
        path: Where; must not exist, and is removed by `close`.
        stream: Listen on a SOCK_STREAM socket.

    Raises:
        TransportError: It can't be made.
    """

    def __init__(self, path: str | Path, *, stream: bool = False) -> None:
        self._path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, _kind(stream))
        try:
            self._socket.bind(self._path)
            self._socket.listen()
        except OSError as error:
            self._socket.close()
            raise TransportError(f"can't listen on {path}: {error}") from error

    def fileno(self) -> int:
        """The descriptor: readable when someone wants to connect."""
        return self._socket.fileno()

    def accept(self) -> ChannelEnd:
        """Wait for a client, and return the channel to it.

        Raises:
            TransportError: The listener is closed.
        """
        try:
            connection, _ = self._socket.accept()
        except OSError as error:
            raise TransportError(f"{self._path} is closed: {error}") from error
        return ChannelEnd(connection.detach(), used=False)

    def close(self) -> None:
        """Listen no more; channels that are there stay."""
        if self._socket.fileno() < 0:
            return
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes who waits in `accept`
            os.unlink(self._path)
        except OSError:
            pass
        finally:
            self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
