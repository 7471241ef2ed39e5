"""The verb `traced`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError
from stretto.base.socket_address import is_network
from stretto.base.socket_names import (
    CONSUMER_VARIABLE,
    PRODUCER_VARIABLE,
    consumer_socket,
    producer_sockets,
)
from stretto.cli.background import daemonize
from stretto.cli.traced.activation import activated_sockets
from stretto.cli.traced.arguments import TracedOptions
from stretto.cli.traced.log import Log
from stretto.cli.traced.notify import Notifier
from stretto.cli.traced.pid_file import PidFile
from stretto.cli.traced.sockets import open_sockets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stretto.cli.traced.sockets import Sockets


def run(arguments: Sequence[str]) -> int:
    """Run `stretto traced`; return when the daemon has ended, or with --background is ready.

    Raises:
        CommandError: the daemon was not started; the message says why.
    """
    options = TracedOptions(arguments)
    if options.version:
        from stretto import __version__

        print(f"stretto {__version__}")
        return 0
    _check(options)
    sockets = open_sockets(
        activated_sockets(os.environ),
        (producer_sockets(), options.producers),
        ([consumer_socket()], options.consumers),
    )
    # The daemon is imported before the fork, so that an import error is printed on the terminal.
    from stretto.cli.traced import daemon  # noqa: F401

    on_ready = daemonize() if options.background else _ignore_status
    try:
        _serve(options, sockets, on_ready)
    finally:
        sockets.close()
    return 0


def _check(options: TracedOptions) -> None:
    """Refuse options that contradict each other.

    Raises:
        CommandError: the message says what to change.
    """
    for address in options.relays_on:
        if address not in producer_sockets():
            raise CommandError(
                f"traced: --enable-relay-endpoint-on {address}: {PRODUCER_VARIABLE} doesn't name "
                "that socket."
            )
    if is_network(consumer_socket()) and not options.network_consumers:
        raise CommandError(
            f"traced: {CONSUMER_VARIABLE}={consumer_socket()} is a network address, where the "
            "identity of peers is unverified: --allow-network-consumers accepts all of them."
        )


def _serve(options: TracedOptions, sockets: Sockets, on_ready: Callable[[int], object]) -> None:
    from stretto.cli.traced.daemon import Daemon
    from stretto.ports.peer_rule import PeerRule

    pid_file = PidFile(options.pid_file) if options.pid_file else None
    log, notifier = Log(), Notifier()
    daemon = Daemon(
        sockets,
        log,
        may_consume=PeerRule(options.consumers.effective_group),
        network_consumers=options.network_consumers,
        takes_relays=options.takes_relays,
    )

    def ready() -> None:
        log.write(f"listens: {sockets.describe()}")
        on_ready(0)
        notifier.ready()

    try:
        daemon.run(ready, notifier.stopping)
    finally:
        daemon.close()
        if pid_file is not None:
            pid_file.remove()


def _ignore_status(_status: int) -> None:
    """Do nothing: in the foreground no parent waits for the status."""
