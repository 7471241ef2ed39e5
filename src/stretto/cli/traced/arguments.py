"""The options of `stretto traced`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.cli.traced.permissions import default_permissions, parse_permissions
from stretto.cli.verb_parser import VerbParser

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = """\
The tracing service of a machine: a daemon between all that write traces (producers: Python
programs, Chromium, whatever has Perfetto's library) and those who record them (consumers).

  stretto traced --background          start it, for this user
  stretto record --system app.py       record a program together with all other producers
  kill PID                             end it; sessions that write a file are saved

Sockets are Perfetto's, and so are the variables that move them (a path, @name for an abstract
socket, host:port, vsock://cid:port; of producers' sockets several, with commas between them):

  PERFETTO_PRODUCER_SOCK_NAME   /run/perfetto/traced-producer.sock, or /tmp/perfetto-producer
  PERFETTO_CONSUMER_SOCK_NAME   /run/perfetto/traced-consumer.sock, or /tmp/perfetto-consumer

The first where the folder /run/perfetto is there, else the second. Every user may be a producer;
a consumer only the daemon's own user, root, and the group that --set-socket-permissions names.
"""

EPILOG = """\
With systemd: sockets that it opens are taken over (LISTEN_FDS), and it is told when the daemon
is ready (NOTIFY_SOCKET). docs/traced.md has unit files.
"""


def _make_parser() -> VerbParser:
    parser = VerbParser("traced", DESCRIPTION, epilog=EPILOG)
    add = parser.add_argument
    add(
        "--background",
        action="store_true",
        help="return when the daemon is ready; its pid is printed",
    )
    add("--pid-file", metavar="FILE", help="where the pid is kept while the daemon runs")
    add(
        "--set-socket-permissions",
        metavar="GROUP:MODE:GROUP:MODE",
        help="group and octal mode of the producers' sockets, then of the consumers'; an empty "
        "group is the daemon's own (:0666::0600)",
    )
    add(
        "--enable-relay-endpoint",
        action="store_true",
        help="accept relays of other machines on all sockets of producers",
    )
    add(
        "--enable-relay-endpoint-on",
        metavar="SOCKET",
        action="append",
        default=[],
        help="accept them on this one, as it is called in PERFETTO_PRODUCER_SOCK_NAME; repeatable",
    )
    add(
        "--allow-network-consumers",
        action="store_true",
        help="let whoever reaches a consumers' socket at host:port or vsock:// read all traces",
    )
    add("--version", action="store_true", help="print the version")
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
