"""`stretto fidl symbolize`: names for what a trace shows by ordinals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stretto.analysis.open_packets import open_trace
from stretto.analysis.ordinal_names import Symbolizer, method_names
from stretto.base.errors import CommandError, DecodeError
from stretto.cli.fidl.ir_file import read_ir
from stretto.cli.verb_parser import VerbParser

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = """\
Name the messages that a trace shows as `ordinal 0x…`, as their tracer didn't know the protocol.

  stretto fidl compile greeter.fidl --json greeter.json
  stretto fidl symbolize trace.pftrace greeter.json -o named.pftrace

A trace of Fuchsia (.fxt) is converted on the way: its kernel knows the ordinals of messages only.
"""


def run(arguments: Sequence[str]) -> int:
    """Symbolize.

    Raises:
        CommandError: A file can't be read or written, or isn't what it should be.
    """
    parser = VerbParser("fidl symbolize", DESCRIPTION)
    parser.add_argument("trace", metavar="TRACE")
    parser.add_argument("files", nargs="+", metavar="IR", help="JSON IR, a file for each library")
    parser.add_argument("-o", "--out", required=True, metavar="FILE", help="the trace with names")
    given = parser.parse_args(arguments)
    symbolizer = Symbolizer(method_names(read_ir("fidl symbolize", name) for name in given.files))
    try:
        with open_trace(given.trace) as packets:
            named = symbolizer.symbolize(packets.read())
        Path(given.out).write_bytes(named)
    except OSError as error:
        raise CommandError(f"fidl symbolize: {error.filename!r}: {error.strerror}.") from error
    except DecodeError as error:
        raise CommandError(f"fidl symbolize: can't read {given.trace!r}: {error}.") from error
    print(f"{len(symbolizer.named)} ordinals got a name, {len(symbolizer.unknown)} have none.")
    return 0
