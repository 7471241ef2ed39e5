"""Errors of reading a trace, as those of a verb; and warnings of what can't be read."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@contextmanager
def reading(verb: str, path: str) -> Iterator[None]:
    """Raise errors that occur in the block as errors of a verb.

    Args:
        verb: The verb, for the messages.
        path: The path of the trace, for the messages.

    Raises:
        CommandError: The file can't be opened (exit status 2), it isn't a trace, or a package that
            the verb needs is missing (both exit status 1).
        ModuleNotFoundError: The native part is missing.
        BrokenPipeError: The reader of standard output has gone.
    """
    try:
        yield
    except DecodeError as error:
        raise CommandError(f"{verb}: can't read {path!r}: {error}.") from error
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("stretto."):
            raise  # The native part is missing.
        raise CommandError(f"{verb}: {error}.") from error
    except BrokenPipeError:
        raise
    except IsADirectoryError as error:
        raise CommandError(f"{verb}: {path!r} is a folder: name one trace in it.", 2) from error
    except OSError as error:
        reason = error.strerror or error
        raise CommandError(f"{verb}: can't read {path!r}: {reason}.", 2) from error


def warn_of_damage(verb: str, path: str, damage: Iterable[str]) -> None:
    """Print what a verb doesn't know of a trace, on standard error.

    Args:
        verb: The verb, for the messages.
        path: The path of the trace, for the messages.
        damage: A line for each reason (`stretto.analysis.trace_tables.damage`).
    """
    for line in damage:
        warn(verb, path, f"unread: {line}")


def warn(verb: str, path: str, text: str) -> None:
    """Print a sentence about a trace, without its period, on standard error."""
    if sys.stderr is not None:
        print(f"stretto: {verb}: {path!r}: {text}.", file=sys.stderr)
