"""The verb `fidl`: runs a subcommand."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

SUBCOMMANDS = {
    "compile": ("stretto_fidl.cli.compile", "definitions to the JSON IR"),
    "generate": ("stretto_fidl.cli.generate", "the JSON IR to modules of Python"),
    "symbolize": ("stretto_fidl.cli.symbolize", "names for what a trace shows by ordinals"),
}
"""The module and the description of each subcommand, by name."""


def _help() -> str:
    lines = [f"  stretto fidl {name:<10} {text}\n" for name, (_, text) in SUBCOMMANDS.items()]
    return f"FIDL: interfaces between processes.\n\n{''.join(lines)}"


def run(arguments: Sequence[str]) -> int:
    """Compile FIDL definitions, generate bindings.

    `stretto --help` shows the first line of this docstring.

    Returns:
        The exit code of the subcommand.

    Raises:
        CommandError: There is no such subcommand.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help(), end="")
        return 0 if arguments else 2
    if arguments[0] not in SUBCOMMANDS:
        known = ", ".join(SUBCOMMANDS)
        raise CommandError(f"fidl: no subcommand {arguments[0]!r}: choose from {known}.", 2)
    module, _ = SUBCOMMANDS[arguments[0]]
    return int(import_module(module).run(arguments[1:]))
