"""Parses the options of `stretto record` with argparse: prints the help, and reports errors.

Importing argparse takes nearly as long as starting an interpreter. So this module is imported only
for command lines that `arguments` doesn't parse itself.
"""

from __future__ import annotations

import argparse

from stretto.base.errors import ConfigError
from stretto.cli.record.options import GROUPS
from stretto.cli.verb_parser import VerbParser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from stretto.cli.record.options import Option

DESCRIPTION = """\
Run a program and record it, with all its child processes, into a Perfetto trace.

  stretto record app.py --its-own options      a script
  stretto record -m package.module             a module
  stretto record -c 'print("hello")'           code
  stretto record -- pytest -x tests            any command found on PATH
  stretto record -o web.pftrace gunicorn -w 4 app:app
  stretto record --attach 1234                 what process 1234 does from now on

The program runs as without Stretto: same arguments, same output, same exit status. The trace
has the whole run, with every call that is long enough to be seen (--auto).
Open the trace with `stretto view`, or at https://ui.perfetto.dev.
"""

EPILOG = """\
while it runs:
  kill -USR2 RECORDER     writes the trace up to now into a file, and continues recording
if the recorder was killed:
  OUT.part is a trace as it is; with --ring, `stretto recover OUT.ring` makes one
"""


def parse(words: Sequence[str]) -> dict[str, Any]:
    """Parse options; return their values by name, with the defaults of all others.

    Raises:
        CommandError: an option is unknown or invalid.
        SystemExit: the help was printed.
    """
    parser = VerbParser(
        "record",
        DESCRIPTION,
        usage="stretto record [options] [--] app.py | -m module | -c code | command  [arguments]",
        epilog=EPILOG,
    )
    for group in GROUPS:
        target = parser.add_argument_group(group.title, group.text) if group.title else parser
        for option in group.options:
            _add(target, option)
    return vars(parser.parse_args(words))


def _add(target: argparse._ActionsContainer, option: Option) -> None:
    if not option.has_value and option.bare is None:
        target.add_argument(*option.names, action="store_true", help=option.text.replace("%", "%%"))
        return
    target.add_argument(
        *option.names,
        action="append" if option.repeatable else "store",
        nargs=None if option.bare is None else "?",
        const=option.bare,
        metavar=option.metavar or None,
        choices=option.choices or None,
        type=_converter(option.parse),
        default=option.default,
        help=option.text.replace("%", "%%"),
    )


def _converter(parse_value: Callable[[str], object]) -> Callable[[str], object]:
    """Return a function that reports an invalid value in argparse's way."""

    def convert(text: str) -> object:
        try:
            return parse_value(text)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error).rstrip(".")) from error

    return convert
