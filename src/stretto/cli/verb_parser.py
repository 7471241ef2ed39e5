"""An argument parser for one verb: mistakes are `CommandError`s that say where help is."""

from __future__ import annotations

import argparse
from typing import NoReturn

from stretto.base.errors import CommandError


class VerbParser(argparse.ArgumentParser):
    """Args:
    verb: `view`, as in `stretto view`.
    description: The text of `--help`, laid out as it is.
    """

    def __init__(self, verb: str, description: str) -> None:
        super().__init__(
            prog=f"stretto {verb}",
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._verb = verb

    def error(self, message: str) -> NoReturn:
        """Refuse the command line.

        Raises:
            CommandError: Always.
        """
        raise CommandError(f"{self._verb}: {message}. `stretto {self._verb} --help` shows how.", 2)


def port_number(text: str) -> int:
    """A TCP port; 0 for any free one.

    Raises:
        ValueError: It's none.
    """
    port = int(text)
    if not 0 <= port <= 0xFFFF:
        raise ValueError(text)
    return port


port_number.__name__ = "port"  # as argparse names it in a message
