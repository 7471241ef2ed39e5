"""Connects programs by a socket in the file system."""

from __future__ import annotations

import errno
import os
import socket
import stat
from typing import TYPE_CHECKING, Self

from stretto.base.errors import TransportError
from stretto_fidl.bindings.objects import ChannelEnd

if TYPE_CHECKING:
    from pathlib import Path


def _kind(stream: bool) -> int:
    return socket.SOCK_STREAM if stream else socket.SOCK_SEQPACKET


def connect(path: str | Path, *, stream: bool = False) -> ChannelEnd:
    """Connect to a server, and return the channel end.

    Args:
        path: The path of the server's socket.
        stream: Whether the server listens on a SOCK_STREAM socket.

    Raises:
        TransportError: No server listens there.
    """
    with socket.socket(socket.AF_UNIX, _kind(stream)) as own:
        try:
            own.connect(str(path))
        except (OSError, ValueError) as error:
            raise TransportError(f"can't connect to {path}: {error}") from error
        return ChannelEnd(own.detach(), used=False)


class Listener:
    """A socket that clients connect to.

    Args:
        path: The path of the socket. No file may exist there. `close` and the finalizer of the
            listener remove the socket, except in a forked child.
        stream: Whether to listen on a SOCK_STREAM socket instead of SOCK_SEQPACKET.

    Raises:
        TransportError: The socket can't be made.
    """

    def __init__(self, path: str | Path, *, stream: bool = False) -> None:
        self._path = str(path)
        self._owner = os.getpid()
        self._file: tuple[int, int] | None = None
        self._socket = socket.socket(socket.AF_UNIX, _kind(stream))
        try:
            self._socket.bind(self._path)
            self._file = _identity(self._path)
            self._socket.listen()
        except (OSError, ValueError) as error:
            self.close()
            problem = _address_user(self._path, stream) if _in_use(error) else str(error)
            raise TransportError(f"can't listen on {path}: {problem}") from error

    def fileno(self) -> int:
        """Return the descriptor. It is readable when a client connects."""
        return self._socket.fileno()

    def accept(self) -> ChannelEnd:
        """Wait for a client to connect, and return the channel end.

        Raises:
            TransportError: The listener is closed.
        """
        try:
            connection, _ = self._socket.accept()
        except OSError as error:
            raise TransportError(f"{self._path} is closed: {error}") from error
        return ChannelEnd(connection.detach(), used=False)

    def close(self) -> None:
        """Stop listening; existing channels stay open."""
        if self._socket.fileno() < 0:
            return
        try:
            if os.getpid() == self._owner:
                # This wakes the threads that wait in `accept`.
                self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the socket is not listening, so no thread waits in `accept`
        finally:
            self._remove()
            self._socket.close()

    def _remove(self) -> None:
        """Remove the socket file, unless another file has taken its place."""
        if os.getpid() != self._owner or self._file is None:
            return
        if self._file == _identity(self._path):
            try:
                os.unlink(self._path)
            except OSError:
                return  # the file has been removed already

    def __del__(self) -> None:
        if hasattr(self, "_socket"):
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode of the file at a path; None if there is none."""
    try:
        status = os.stat(path, follow_symlinks=False)
    # ValueError: the path is a name in the abstract namespace, which begins with a zero byte.
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _in_use(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EADDRINUSE


def _address_user(path: str, stream: bool) -> str:
    """Return why an address is in use.

    Either a server listens there, or an earlier server has left its file there.
    """
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return "the path exists and is not a socket: choose another path"
    except (OSError, ValueError):
        return "another server listens there"
    with socket.socket(socket.AF_UNIX, _kind(stream)) as visitor:
        visitor.setblocking(False)
        try:
            visitor.connect(path)
        except ConnectionRefusedError:
            return "the file exists, but no server listens: if its server has exited, remove it"
        except OSError:
            # The queue of the server that listens is full, or the two sockets have different types.
            pass
    return "another server listens there"
