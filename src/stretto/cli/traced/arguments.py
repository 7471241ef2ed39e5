"""The options of `stretto traced`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.cli.traced.permissions import default_permissions, parse_permissions
from stretto.cli.verb_parser import VerbParser, flag, repeatable

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = """\
Run the tracing service of this machine: a daemon between producers, which write trace data
(Python programs, Chromium, programs with Perfetto's SDK), and consumers, which record it.

  stretto traced --background          start it, for this user
  stretto record --system app.py       record a program together with all other producers
  kill PID                             end it; sessions that write a file are saved

The sockets are Perfetto's, and so are the variables with their addresses: a path, @name for an
abstract socket, host:port, or vsock://cid:port; for producers several, separated by commas.

  PERFETTO_PRODUCER_SOCK_NAME   /run/perfetto/traced-producer.sock, or /tmp/perfetto-producer
  PERFETTO_CONSUMER_SOCK_NAME   /run/perfetto/traced-consumer.sock, or /tmp/perfetto-consumer

The first default is used if the folder /run/perfetto exists, else the second. Every user may be
a producer. Only the daemon's own user, root, and the consumers' group of --set-socket-permissions
may be consumers.
"""

EPILOG = """\
With systemd: the daemon takes over sockets that systemd has opened (LISTEN_FDS), and notifies
systemd when it is ready (NOTIFY_SOCKET). docs/traced.md has unit files.
"""


def _make_parser() -> VerbParser:
    parser = VerbParser("traced", DESCRIPTION, epilog=EPILOG)
    add = parser.add_argument
    flag(
        parser,
        "--background",
        "run in the background; print the pid, and return when the daemon is ready",
    )
    add("--pid-file", metavar="FILE", help="file with the pid, while the daemon runs")
    add(
        "--set-socket-permissions",
        metavar="GROUP:MODE:GROUP:MODE",
        help="group and octal mode of the producers' sockets, then of the consumers'; an empty "
        "group is the daemon's own (:0666::0600)",
    )
    flag(
        parser,
        "--enable-relay-endpoint",
        "accept relays of other machines on all sockets of producers",
    )
    repeatable(
        parser,
        "--enable-relay-endpoint-on",
        "SOCKET",
        "accept relays on this socket, written as in PERFETTO_PRODUCER_SOCK_NAME",
    )
    flag(
        parser,
        "--allow-network-consumers",
        "accept consumers at host:port and vsock:// addresses: all peers can read all traces",
    )
    flag(parser, "--version", "print the version")
    return parser


class TracedOptions:
    """The parsed command line.

    Raises:
        CommandError: the command line is wrong.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        parsed = _make_parser().parse_args(list(arguments))
        self.background: bool = parsed.background
        self.pid_file = os.path.abspath(parsed.pid_file) if parsed.pid_file else ""
        self.version: bool = parsed.version
        self.relays: bool = parsed.enable_relay_endpoint
        self.relays_on: list[str] = parsed.enable_relay_endpoint_on
        self.network_consumers: bool = parsed.allow_network_consumers
        permissions: str | None = parsed.set_socket_permissions
        self.producers, self.consumers = (
            default_permissions() if permissions is None else parse_permissions(permissions)
        )

    def takes_relays(self, address: str) -> bool:
        """Whether relays may connect to a producers' socket."""
        return self.relays or address in self.relays_on
