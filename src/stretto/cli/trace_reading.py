"""Errors of reading a trace, as those of a verb."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def reading(verb: str, path: str) -> Iterator[None]:
    """Raise errors that occur in the block as errors of a verb.

    Args:
        verb: The verb, for the messages.
        path: The path of the trace, for the messages.

    Raises:
        CommandError: The file can't be opened (exit status 2), it isn't a trace, or a package that
            the verb needs is missing (both exit status 1).
        BrokenPipeError: The reader of standard output has gone.
    """
    try:
        yield
    except DecodeError as error:
        raise CommandError(f"{verb}: can't read {path!r}: {error}.") from error
    except ModuleNotFoundError as error:
        raise CommandError(f"{verb}: {error}.") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or error
        raise CommandError(f"{verb}: can't read {path!r}: {reason}.", 2) from error
