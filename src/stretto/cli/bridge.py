"""The verb `bridge`: lets the record page of the Perfetto UI record here."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from typing import TYPE_CHECKING

from stretto.base.errors import TransportError
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.socket_names import consumer_socket
from stretto.base.unix_socket import UnixSocket
from stretto.cli.verb_parser import VerbParser, port_number
from stretto.viewer.access import PUBLIC_UI, Access
from stretto.viewer.bridge import PATH, PORT, Bridge
from stretto.viewer.http_server import HttpServer
from stretto.viewer.loopback import LOOPBACK
from stretto.viewer.peer_user import allowed_users

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

ORIGINS = (PUBLIC_UI, "http://localhost:10000", "http://127.0.0.1:10000", "http://127.0.0.1:9001")
"""Pages that may record: the public UI, one that its developers run, one of `stretto view`."""

MAX_REFUSALS_SHOWN = 20

DESCRIPTION = """\
Let the record page of the Perfetto UI record on this machine.

  stretto traced                      the tracing service
  stretto bridge                      this, between the page and the service
  https://ui.perfetto.dev/#!/record   the page: choose Linux, then ws://127.0.0.1:8037/traced

For another machine, run both there and this here:  ssh -L 8037:127.0.0.1:8037 THERE
It listens on 127.0.0.1 only, answers only you (and root), and only pages of the Perfetto UI.
Ctrl-C ends it.
"""


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = VerbParser("bridge", DESCRIPTION)
    parser.add_argument(
        "--port", type=port_number, default=PORT, metavar="N",
        help=f"listen there ({PORT}, which the page looks for)",
    )  # fmt: skip
    parser.add_argument(
        "--origin", action="append", default=[], metavar="ORIGIN",
        help="a page of http://HOST:PORT may record, too; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--user", action="append", default=[], metavar="NAME",
        help="another user of this machine may record, too; may be repeated",
    )  # fmt: skip
    return parser.parse_args(arguments)


def _connect(address: str) -> UnixSocket:
    """Connect to a service that we may trust, at once.

    Raises:
        TransportError: There is none.
    """
    end = UnixSocket.connect(address, timeout_ms=0)
    uid = end.peer_credentials().uid
    if uid not in (0, os.geteuid()):
        end.close()
        raise TransportError(f"the service at {address} runs as user {uid}: it must be ours")
    return end


def _tell(message: str) -> None:
    print(f"stretto: {message}", file=sys.stderr)


class _Refusals:
    """Tells of each kind of refusal once: the page doesn't say why it can't connect."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, message: str) -> None:
        if message not in self._told and len(self._told) < MAX_REFUSALS_SHOWN:
            self._told.add(message)
            _tell(f"refused a page: {message}")


def _tell_start(port: int, address: str) -> None:
    _tell(f"ws://{LOOPBACK}:{port}{PATH} leads to the tracing service at {address}. Ctrl-C ends.")
    try:
        _connect(address).close()
    except TransportError as error:
        _tell(f"{error}. Start `stretto traced`; this goes on.")


def run(arguments: Sequence[str]) -> int:
    """`stretto bridge`.

    Raises:
        StrettoError: The port can't be used, or an argument makes no sense.
    """
    options = _parse(arguments)
    address = consumer_socket()
    users = allowed_users(tuple(options.user))
    with (
        closing(SelectorTaskRunner()) as runner,
        closing(HttpServer(options.port, runner, users)) as server,
    ):
        access = Access(server.port, (*ORIGINS, *options.origin))
        server.serve(Bridge(access, lambda: _connect(address), runner, _Refusals()))
        _tell_start(server.port, address)
        try:
            runner.run()
        except KeyboardInterrupt:
            pass
    return 0
