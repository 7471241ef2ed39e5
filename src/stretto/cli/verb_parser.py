"""The argument parser of every verb: errors are `CommandError`s that refer to the verb's help."""

from __future__ import annotations

import argparse
import re

from stretto.base.errors import CommandError
from stretto.base.nearest_name import MISTYPED, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

USAGE_EXIT_CODE = 2
_NEGATIVE = re.compile(r"-\.?\d")
"""The beginning of a value such as `-5us`. The option's own parser says what is wrong with it."""
_UNKNOWN = re.compile(r"unrecognized arguments: (-[^\s=]+)|invalid choice: '([^']+)'")


def flag(group: argparse._ActionsContainer, names: str, text: str) -> None:
    """Add an option without a value. `names` are separated by spaces; `text` is its help."""
    group.add_argument(*names.split(), action="store_true", help=text)


def repeatable(group: argparse._ActionsContainer, names: str, metavar: str, text: str) -> None:
    """Add an option whose values are collected in a list."""
    text = f"{text}; repeatable"
    group.add_argument(*names.split(), action="append", default=[], metavar=metavar, help=text)


class VerbParser(argparse.ArgumentParser):
    """Parses the arguments of one verb.

    Args:
        verb: The name: `view` for `stretto view`.
        description: The text of `--help`; its line breaks are kept.
        usage: The usage line of `--help`, instead of argparse's own.
        epilog: The text below the options in `--help`.
        exit_code: The exit code of a wrong command line.
    """

    def __init__(
        self,
        verb: str,
        description: str,
        *,
        usage: str | None = None,
        epilog: str | None = None,
        exit_code: int = USAGE_EXIT_CODE,
    ) -> None:
        super().__init__(
            prog=f"stretto {verb}",
            usage=usage,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._negative_number_matcher = _NEGATIVE  # argparse's own needs a number without a unit.
        self.suggest_on_error = False  # CPython 3.15 suggests choices, but no options.
        self._verb = verb
        self._exit_code = exit_code

    def error(self, message: str) -> NoReturn:
        """Refuse the command line.

        Raises:
            CommandError: Always.
        """
        text = f"{self._verb}: {message}.{self._suggestion(message)}"
        raise CommandError(f"{text} `stretto {self._verb} --help` shows how.", self._exit_code)

    def _suggestion(self, message: str) -> str:
        """Return a sentence with the options or choices most similar to an unknown one."""
        unknown = _UNKNOWN.search(message)
        if unknown is None:
            return ""
        option, choice = unknown.groups()
        if option:
            return nearest(option, self._option_string_actions, MISTYPED)
        choices = (str(each) for action in self._actions for each in action.choices or ())
        return nearest(choice, choices, MISTYPED)


def port_number(text: str) -> int:
    """Parse a TCP port; 0 stands for any free port.

    Raises:
        ValueError: The text isn't a number from 0 to 65535.
    """
    port = int(text)
    if not 0 <= port <= 0xFFFF:
        raise ValueError(text)
    return port


port_number.__name__ = "port"  # argparse shows this name in its messages.
