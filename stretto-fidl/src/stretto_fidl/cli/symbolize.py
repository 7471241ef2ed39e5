"""Runs `stretto fidl symbolize`, which replaces ordinals by names in a trace."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stretto.analysis.open_packets import open_trace
from stretto.base.errors import CommandError, DecodeError
from stretto.cli.output_file import STANDARD, open_output
from stretto.cli.verb_parser import VerbParser
from stretto_fidl.bindings.ir import reading
from stretto_fidl.bindings.ir_checks import checked_name
from stretto_fidl.cli.ir_file import read_ir
from stretto_fidl.cli.ordinal_names import Symbolizer, method_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

DESCRIPTION = """\
Name the messages that a trace shows as `ordinal 0x…`, as their tracer didn't know the protocol.

  stretto fidl compile greeter.fidl --json greeter.json
  stretto fidl symbolize trace.pftrace greeter.json -o named.pftrace

A trace of Fuchsia (.fxt) is converted on the way: its kernel knows the ordinals of messages only.
One that is packed by gzip is unpacked. - is standard input, or output.
"""


def run(arguments: Sequence[str]) -> int:
    """Symbolize a trace.

    Raises:
        CommandError: A file can't be read or written, or has the wrong format.
    """
    parser = VerbParser("fidl symbolize", DESCRIPTION)
    parser.add_argument("trace", metavar="TRACE", help="- is standard input")
    parser.add_argument("files", nargs="+", metavar="IR", help="JSON IR, a file for each library")
    parser.add_argument(
        "-o",
        "--out",
        required=True,
        metavar="FILE",
        help="the trace with names; - is standard output",
    )
    given = parser.parse_args(arguments)
    symbolizer = Symbolizer(_names(given.files))
    with open_output("fidl symbolize", given.out, binary=True) as out:
        out.write(_named(given.trace, symbolizer))
    _say(symbolizer, sys.stderr if given.out == STANDARD else sys.stdout)
    return 0


def _named(path: str, symbolizer: Symbolizer) -> bytes:
    try:
        with open_trace(path) as packets:
            return symbolizer.symbolize(packets.read())
    except OSError as error:
        where = error.filename or path
        raise CommandError(f"fidl symbolize: {where!r}: {error.strerror or error}.") from error
    except DecodeError as error:
        raise CommandError(f"fidl symbolize: can't read {path!r}: {error}.") from error


def _say(symbolizer: Symbolizer, stream: TextIO | None) -> None:
    if stream is None:
        return  # stdout is closed. `print(file=None)` would still write to `sys.stdout`.
    print(
        f"{len(symbolizer.named)} ordinals got a name, {len(symbolizer.unknown)} have none.",
        file=stream,
    )


def _names(files: Sequence[str]) -> dict[int, str]:
    with reading():
        names = method_names(read_ir("fidl symbolize", file) for file in files)
        for name in names.values():
            checked_name(name)
    return names
