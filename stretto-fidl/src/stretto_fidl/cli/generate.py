"""Runs `stretto fidl generate`, which writes Python modules for a JSON IR."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError
from stretto.cli.verb_parser import VerbParser
from stretto_fidl.bindings.generator import KEEP, STRIP, generate
from stretto_fidl.cli.ir_file import read_ir

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = """\
Write a module of Python, and its stub, for each FIDL library.

  stretto fidl compile greeter.fidl --json greeter.json
  stretto fidl generate greeter.json --out app/fidl --prefix app.fidl

Library a.b becomes a_b.py and a_b.pyi. The classes are those that
stretto_fidl.bindings.load makes of the same IR while a program runs.
"""


def _parser() -> VerbParser:
    parser = VerbParser("fidl generate", DESCRIPTION)
    parser.add_argument("files", nargs="+", metavar="IR", help="JSON IR, a file for each library")
    parser.add_argument("--out", default=".", metavar="FOLDER", help="where they go (here)")
    parser.add_argument(
        "--prefix", default="", metavar="PACKAGE", help="the package that FOLDER is (none)"
    )
    parser.add_argument(
        "--trace",
        choices=(KEEP, STRIP),
        default=KEEP,
        help="whether @trace leaves a mark (keep)",
    )
    return parser


def run(arguments: Sequence[str]) -> int:
    """Generate the bindings of libraries.

    Raises:
        CommandError: A file can't be read or written, or is not an IR.
        FidlError: The IR contains something unknown.
    """
    options = _parser().parse_args(arguments)
    texts: dict[str, str] = {}
    for name in options.files:
        ir = read_ir("fidl generate", name)
        texts |= generate(ir, prefix=options.prefix, trace=options.trace)
    for path, text in texts.items():
        _write(Path(options.out), path, text)
    return 0


def _write(folder: Path, path: str, text: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    except OSError as error:
        where = str(folder / path)
        raise CommandError(f"fidl generate: can't write {where!r}: {error.strerror}.") from error
