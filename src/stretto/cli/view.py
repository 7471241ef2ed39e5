"""The verb `view`: shows a trace in the Perfetto UI."""

from __future__ import annotations

import sys
from contextlib import closing
from threading import Thread
from typing import TYPE_CHECKING

from stretto.analysis.trace_format import SNIFFED_BYTES, format_of_start
from stretto.base.errors import CommandError, TransportError
from stretto.base.portable import read_at
from stretto.cli.browser import find_browser
from stretto.cli.verb_parser import VerbParser, flag, port_number, repeatable
from stretto.viewer.access import LOOPBACK, PUBLIC_UI, SOURCE_HOST, Access, origin_of
from stretto.viewer.first_view import START_BYTES, first_view
from stretto.viewer.page_server import PageServer
from stretto.viewer.peer_user import allowed_users
from stretto.viewer.trace_site import PORT, TraceFile, TraceSite, trace_url, ui_url
from stretto.viewer.ui_files import PACKAGE, UiFiles, find_ui

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

DESCRIPTION = """\
Show a trace in the Perfetto UI.

  stretto view trace.pftrace            in the UI at https://ui.perfetto.dev
  stretto view --offline trace.pftrace  in a copy of it on this machine

The trace stays on this machine: the page fetches it from 127.0.0.1. Then the command ends. With
--offline it also serves the page itself, and runs until Ctrl-C.
"""

_OTHER_STARTS = (
    b"\x1f\x8b", b"PK\x03\x04", b"PERFILE2", b"SIMPLEPERF", b"*version", b"JAVA PROFILE",
    b"TRACE:", b"# tracer", b"# ninja log", b"<!DOCTYPE html", b"<html", b"<?xml",
)  # fmt: skip
"""The first bytes of formats that the UI reads but Stretto doesn't."""


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = VerbParser("view", DESCRIPTION)
    parser.add_argument("trace", metavar="TRACE", help="a file that the Perfetto UI can read")
    flag(parser, "--offline", f"show it in the copy of the UI in the package {PACKAGE}")
    parser.add_argument(
        "--ui", default=PUBLIC_UI, metavar="URL", help=f"address of the UI (default: {PUBLIC_UI})"
    )
    flag(parser, "--no-source", "with --offline: don't show the source text of functions")
    flag(parser, "--no-browser", "open no browser: only print the address")
    flag(parser, "--keep", "serve the trace until Ctrl-C")
    parser.add_argument(
        "--port", type=port_number, metavar="N",
        help=f"port to serve from (default: {PORT}, the only one that the public UI uses)",
    )  # fmt: skip
    repeatable(parser, "--user", "NAME", "accept this user of the machine, too")
    return parser.parse_args(arguments)


def _ui_files() -> UiFiles:
    folder = find_ui()
    if folder is None:
        raise CommandError(
            f"view: --offline needs a copy of the UI. `{sys.executable} -m pip install {PACKAGE}` "
            "installs one."
        )
    return UiFiles(folder)


def _server(options: argparse.Namespace) -> PageServer:
    users = allowed_users(tuple(options.user))
    if options.port is not None:
        return PageServer(options.port, users)
    try:
        return PageServer(PORT, users)
    except TransportError as error:
        if options.offline:
            return PageServer(0, users)  # The local copy of the UI can fetch from any port.
        raise CommandError(
            f"view: {error} The UI fetches traces from this port only. Is another `stretto view` "
            "running, or a trace processor? End it, or use --offline."
        ) from error


def _trace_file(path: str) -> TraceFile:
    try:
        trace = TraceFile(path)
    except TransportError as error:
        raise CommandError(f"view: {error}.", 2) from error
    start = read_at(trace.fileno(), SNIFFED_BYTES, 0)
    if format_of_start(start) is None and not start.startswith(_OTHER_STARTS):
        _tell(f"{path!r} doesn't begin like a trace: the UI may be unable to read it.")
    return trace


class _Viewing:
    """One run of the verb: serves the trace until the page has fetched it."""

    def __init__(
        self,
        options: argparse.Namespace,
        server: PageServer,
        trace: TraceFile,
        ui: UiFiles | None,
    ) -> None:
        self._options = options
        self._server = server
        self._keep = options.keep or options.offline
        self._trace = trace
        origins = (origin_of(options.ui),) if ui is None else ()
        access = Access(server.port, origins, own_pages=ui is not None)
        sources = ui is not None and not options.no_source
        self._site = TraceSite(trace, access, ui, self._on_fetched, sources=sources)
        host = SOURCE_HOST if sources else LOOPBACK
        home = options.ui if ui is None else f"http://{host}:{server.port}"
        start = read_at(trace.fileno(), START_BYTES, 0)
        view = first_view(start, whole=len(start) == trace.size)
        self.url = ui_url(home, trace_url(server.port, self._site.path, host), view)

    def run(self) -> int:
        """Serve until the page has fetched the trace, or Ctrl-C; return the exit code."""
        print(self.url, flush=True)
        if not self._options.no_browser:
            _open_browser(self.url)
        _tell("Ctrl-C ends." if self._keep else "waiting for the page to fetch it. Ctrl-C ends.")
        try:
            self._server.serve(self._site)
        except KeyboardInterrupt:
            return 0 if self._keep else 130
        return 0

    def _on_fetched(self) -> None:
        _tell(f"the page has {self._trace.name}.")
        if not self._keep:
            # This thread serves a connection. In the thread of `serve_forever`, `shutdown` would
            # block.
            self._server.shutdown()


def _open_browser(url: str) -> None:
    browser = find_browser()
    if browser is None:
        _tell("no browser found: open the address above.")
        return

    def open_it() -> None:
        if not browser(url):
            _tell("the browser didn't start: open the address above.")

    # The browser is started on a thread: some browsers return only when their window is closed.
    Thread(target=open_it, daemon=True).start()


def _tell(message: str) -> None:
    print(f"stretto: {message}", file=sys.stderr)


def run(arguments: Sequence[str]) -> int:
    """Run `stretto view`.

    Raises:
        StrettoError: The trace doesn't exist, the port can't be used, or there is no copy of the
            UI.
    """
    options = _parse(arguments)
    ui = _ui_files() if options.offline else None
    with (
        closing(_trace_file(options.trace)) as trace,
        _server(options) as server,
    ):
        return _Viewing(options, server, trace, ui).run()
