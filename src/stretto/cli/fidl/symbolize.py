"""`stretto fidl symbolize`: names for what a trace shows by ordinals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.analysis.open_packets import open_trace
from stretto.analysis.ordinal_names import Symbolizer, method_names
from stretto.base.errors import CommandError, DecodeError
from stretto.cli.fidl.ir_file import read_ir
from stretto.cli.verb_parser import VerbParser
from stretto.fidl.bindings.ir import reading
from stretto.fidl.bindings.ir_checks import checked_name

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = """\
Name the messages that a trace shows as `ordinal 0x…`, as their tracer didn't know the protocol.

  stretto fidl compile greeter.fidl --json greeter.json
  stretto fidl symbolize trace.pftrace greeter.json -o named.pftrace

A trace of Fuchsia (.fxt) is converted on the way: its kernel knows the ordinals of messages only.
One that is packed by gzip is unpacked. - is standard input, or output.
"""
STANDARD = "-"


def run(arguments: Sequence[str]) -> int:
    """Symbolize.

    Raises:
        CommandError: A file can't be read or written, or isn't what it should be.
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
    if given.out == STANDARD and sys.stdout.isatty():
        raise CommandError("fidl symbolize: a trace isn't for a terminal: add `> FILE`.")
    symbolizer = Symbolizer(_names(given.files))
    try:
        with open_trace(given.trace) as packets:
            named = symbolizer.symbolize(packets.read())
        _write(given.out, named)
    except OSError as error:
        where = error.filename or given.trace
        raise CommandError(f"fidl symbolize: {where!r}: {error.strerror}.") from error
    except DecodeError as error:
        raise CommandError(f"fidl symbolize: can't read {given.trace!r}: {error}.") from error
    print(
        f"{len(symbolizer.named)} ordinals got a name, {len(symbolizer.unknown)} have none.",
        file=sys.stderr if given.out == STANDARD else sys.stdout,
    )
    return 0


def _names(files: Sequence[str]) -> dict[int, str]:
    with reading():
        names = method_names(read_ir("fidl symbolize", file) for file in files)
        for name in names.values():
            checked_name(name)
    return names


def _write(path: str, trace: bytes) -> None:
    if path == STANDARD:
        sys.stdout.buffer.write(trace)
        sys.stdout.buffer.flush()
    else:
        Path(path).write_bytes(trace)
