"""Opens the daemon's sockets: all of them, or none.

Sockets opened by a service manager are used. Missing sockets are opened at the addresses in
Perfetto's variables. Two daemons that start at once must not replace each other's sockets. So a
daemon locks a socket's folder while it checks the socket's path and begins to listen.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, TransportError
from stretto.base.socket_address import is_network
from stretto.base.socket_names import CONSUMER_VARIABLE, PRODUCER_VARIABLE
from stretto.base.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stretto.base.stream_socket import StreamListener
    from stretto.base.unix_socket import UnixListener
    from stretto.cli.traced.permissions import Permissions

LOCK_TIMEOUT_S = 2.0
LOCK_RETRY_S = 0.01


class Sockets:
    """The listening sockets of the daemon."""

    def __init__(self) -> None:
        self.producers: list[StreamListener] = []
        self.consumers: list[StreamListener] = []

    def describe(self) -> str:
        """Return the addresses as text for the log."""
        producers = ", ".join(socket.address for socket in self.producers)
        consumers = ", ".join(socket.address for socket in self.consumers)
        return f"producers: {producers}; consumers: {consumers}"

    def close(self) -> None:
        """Close the sockets and remove their paths."""
        for socket in (*self.producers, *self.consumers):
            socket.close()


def open_sockets(
    activated: Mapping[str, list[UnixListener]],
    producers: tuple[list[str], Permissions],
    consumers: tuple[list[str], Permissions],
) -> Sockets:
    """Open all sockets.

    Args:
        activated: sockets opened by a service manager, by kind.
        producers: the addresses for producers, and their permissions; not used if `activated` has
            sockets for producers.
        consumers: the addresses for consumers, and their permissions; not used if `activated` has
            sockets for consumers.

    Raises:
        CommandError: a socket can't be opened, or there is no address. The opened sockets are
            closed.
    """
    sockets = Sockets()
    sockets.producers += activated.get("producer", [])
    sockets.consumers += activated.get("consumer", [])
    try:
        _open_all(sockets.producers, *producers)
        _open_all(sockets.consumers, *consumers)
    except CommandError:
        sockets.close()
        raise
    return sockets


def _open_all(opened: list[StreamListener], addresses: list[str], permissions: Permissions) -> None:
    """Open sockets and append them to `opened`. No effect if `opened` isn't empty."""
    if not opened:
        if not addresses:
            raise CommandError(f"traced: {PRODUCER_VARIABLE} names no socket.")
        for address in addresses:
            listener = _open(address, permissions)
            opened.append(listener)


def _open(address: str, permissions: Permissions) -> StreamListener:
    try:
        with _locked_folder(address):
            return listen(address, permissions.mode, permissions.group)
    except TransportError as error:
        if getattr(error.__cause__, "errno", 0) == errno.EADDRINUSE:
            raise CommandError(
                f"traced: a tracing service listens on {address} already: end it, or choose "
                f"other addresses with {PRODUCER_VARIABLE} and {CONSUMER_VARIABLE}."
            ) from error
        raise CommandError(f"traced: {error}.") from error


@contextmanager
def _locked_folder(address: str) -> Iterator[None]:
    """Prevent other daemons from opening a socket in the same folder during the block.

    Any process may hold the lock for ever, so the wait for it is short.
    """
    folder = os.path.dirname(address) or "."
    try:
        has_folder = not address.startswith("@") and not is_network(address)
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC) if has_folder else -1
    except OSError:
        fd = -1  # `listen` will raise an error that states the reason.
    try:
        if fd >= 0:
            _lock(fd)
        yield
    finally:
        if fd >= 0:
            os.close(fd)


def _lock(fd: int) -> None:
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(LOCK_RETRY_S)
