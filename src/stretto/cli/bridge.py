"""The verb `bridge`: connects the record page of the Perfetto UI to the tracing service."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, TransportError
from stretto.base.socket_names import consumer_socket
from stretto.base.unix_socket import UnixSocket
from stretto.cli.verb_parser import VerbParser, port_number, repeatable
from stretto.viewer.access import LOOPBACK, PUBLIC_UI
from stretto.viewer.peer_user import allowed_users

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

PORT = 8037
"""The only port that the UI's pages may connect to."""

ORIGINS = (PUBLIC_UI, "http://localhost:10000", "http://127.0.0.1:10000", "http://127.0.0.1:9001")
"""Pages that may record: the public UI, a UI run by its developers, a UI of `stretto view`."""

MAX_REFUSALS_SHOWN = 20

DESCRIPTION = """\
Let the record page of the Perfetto UI record on this machine.

  stretto traced                      the tracing service
  stretto bridge                      the connection from the page to the service
  https://ui.perfetto.dev/#!/record   the page: choose Linux, then ws://127.0.0.1:8037/traced

To record another machine, run both there, and here:  ssh -L 8037:127.0.0.1:8037 THERE
The bridge listens on 127.0.0.1 only. It accepts only your own user, root, and pages of the
Perfetto UI. Ctrl-C ends it.
"""


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = VerbParser("bridge", DESCRIPTION)
    parser.add_argument(
        "--port", type=port_number, default=PORT, metavar="N",
        help=f"port to listen on (default: {PORT}, the only one that the page uses)",
    )  # fmt: skip
    repeatable(parser, "--origin", "ORIGIN", "accept pages of this origin (http://HOST:PORT), too")
    repeatable(parser, "--user", "NAME", "accept this user of the machine, too")
    return parser.parse_args(arguments)


def _connect(address: str) -> socket.socket:
    """Connect, without waiting, to a service that runs as our own user or root.

    Raises:
        TransportError: There is no such service.
    """
    end = UnixSocket.connect(address, timeout_ms=0)
    try:
        uid = end.peer_credentials().uid
        if uid not in (0, os.geteuid()):
            raise TransportError(
                f"the service at {address} runs as user {uid}: it must be ours or root's"
            )
        return socket.socket(fileno=os.dup(end.fileno()))
    finally:
        end.close()


def _tell(message: str) -> None:
    print(f"stretto: {message}", file=sys.stderr)


class _Refusals:
    """Prints each kind of refusal once: the page doesn't show why it can't connect."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def __call__(self, message: str) -> None:
        if message not in self._shown and len(self._shown) < MAX_REFUSALS_SHOWN:
            self._shown.add(message)
            _tell(f"refused a page: {message}")


def _tell_start(port: int, address: str, path: str) -> None:
    _tell(f"ws://{LOOPBACK}:{port}{path} leads to the tracing service at {address}. Ctrl-C ends.")
    try:
        _connect(address).close()
    except TransportError as error:
        _tell(f"{error}. Start `stretto traced`; the bridge keeps running.")


async def _serve(options: argparse.Namespace) -> None:
    from stretto.viewer.bridge import PATH, Bridge

    address = consumer_socket()
    users = allowed_users(tuple(options.user))
    origins = (*ORIGINS, *options.origin)
    bridge = Bridge(lambda: _connect(address), users, origins, _Refusals(), _tell)
    _tell_start(await bridge.start(options.port), address, PATH)
    await asyncio.get_running_loop().create_future()  # The bridge serves until Ctrl-C.


def run(arguments: Sequence[str]) -> int:
    """Run `stretto bridge`.

    Raises:
        StrettoError: `websockets` isn't installed, the port can't be used, or an argument is
            invalid.
    """
    options = _parse(arguments)
    if find_spec("websockets") is None:
        raise CommandError(
            f"bridge: the package websockets is missing: `{sys.executable} -m pip install "
            "'stretto[bridge]'` installs it."
        )
    try:
        asyncio.run(_serve(options))
    except KeyboardInterrupt:
        pass
    return 0
