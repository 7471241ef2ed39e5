"""Runs `stretto fidl compile`, which writes the JSON IR of definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError
from stretto.cli.verb_parser import VerbParser
from stretto_fidl.compiler import compile_files

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = """\
Check the files of a FIDL library, and make its JSON IR.

  stretto fidl compile greeter.fidl                     checks it
  stretto fidl compile greeter.fidl --json -            prints the IR
  stretto fidl compile *.fidl --dep types.fidl --json greeter.json

Today's syntax and the one before RFC-0050 are understood, file by file.
Library `zx`, with handles and rights, needs no file.
"""


def _parser() -> VerbParser:
    parser = VerbParser("fidl compile", DESCRIPTION)
    parser.add_argument("files", nargs="+", metavar="FILE", help="all files of one library")
    parser.add_argument(
        "--dep",
        action="append",
        default=[],
        metavar="FILE",
        help="a file of a library that it uses; again for each",
    )
    parser.add_argument("--json", metavar="OUT", help="where the IR goes; - prints it")
    parser.add_argument(
        "--available",
        action="append",
        default=[],
        metavar="PLATFORM:VERSION",
        help="which version to compile (HEAD)",
    )
    return parser


def _versions(texts: Sequence[str]) -> dict[str, str]:
    versions = {}
    for text in texts:
        platform, colon, version = text.partition(":")
        if not (platform and colon and version):
            raise CommandError(f"fidl compile: {text!r} must be PLATFORM:VERSION.", 2)
        versions[platform] = version
    return versions


def run(arguments: Sequence[str]) -> int:
    """Compile a library.

    Raises:
        CommandError: The arguments are wrong, or the output can't be written.
        CompileError: The definitions are wrong.
    """
    options = _parser().parse_args(arguments)
    versions = _versions(options.available)
    ir = compile_files(options.files, dependencies=options.dep, versions=versions)
    text = json.dumps(ir, indent=2) + "\n"
    if options.json == "-":
        print(text, end="")
    elif options.json is not None:
        try:
            Path(options.json).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(
                f"fidl compile: can't write {options.json!r}: {error.strerror}."
            ) from error
    return 0
