"""The file that a verb makes of a trace.

    new, or a regular file   .stretto-RANDOM beside it ──(whole)──> replaces it at once
    FIFO, device             written as it comes
    -                        standard output

So the name never holds half a result, two writers don't mix, and no other file is touched; what
fails, or is ended by Ctrl-C, SIGTERM or SIGHUP, leaves the old file. Of a symbolic link the
target is replaced. The result is for its owner only (0600), whatever the old file's mode was; an
old file that can't be written is refused.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

from stretto.base.errors import CommandError
from stretto.cli.ending_signals import ending_by_signals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

STANDARD = "-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


class OutputFile:
    """Takes a result; a pipe that nobody reads any more is a BrokenPipeError.

    Args:
        file: What is written to.
        failure: The beginning of the message when it can't be.
    """

    def __init__(self, file: BinaryIO, failure: str) -> None:
        self._file = file
        self._failure = failure

    def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            CommandError: The disk is full, or the like.
        """
        with _writing(self._failure):
            self._file.write(data)

    def flush(self) -> None:
        """Write what is in memory; raises as `write` does."""
        with _writing(self._failure):
            self._file.flush()


@contextmanager
def _writing(failure: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"{failure}: {error.strerror or error}.") from error


@contextmanager
def open_output(
    verb: str, path: str, *, binary: bool, source: os.stat_result | None = None
) -> Iterator[OutputFile]:
    """Open a result; if the block fails, what was there stays.

    Args:
        verb: For messages.
        path: Of the result.
        binary: It isn't meant for a terminal.
        source: Of a file that isn't to be overwritten, as it is being read.

    Raises:
        CommandError: It can't be written.
    """
    if path == STANDARD:
        with _standard(verb, binary=binary) as file:
            yield file
        return
    failure = f"{verb}: can't write {path!r}"
    there = _status(path, failure)
    if there is not None and source is not None and os.path.samestat(there, source):
        raise CommandError(
            f"{verb}: {path!r} is the trace that is read: choose another name for the result.", 2
        )
    if there is not None and not stat.S_ISREG(there.st_mode):
        with _opened(path, os.O_WRONLY, failure) as file:
            yield file
        return
    with ending_by_signals(), _replacing(path, failure, exists=there is not None) as file:
        yield file


@contextmanager
def _standard(verb: str, *, binary: bool) -> Iterator[OutputFile]:
    if sys.stdout is None:
        raise CommandError(f"{verb}: standard output is closed: name a file for the result.", 2)
    if binary and sys.stdout.isatty():
        raise CommandError(f"{verb}: a binary trace isn't for a terminal: add `> FILE`.", 2)
    file = OutputFile(sys.stdout.buffer, f"{verb}: can't write to standard output")
    yield file
    file.flush()


def _status(path: str, failure: str) -> os.stat_result | None:
    """Of the file, where links are followed; None if there is none.

    Raises:
        CommandError: The path leads nowhere, or the system doesn't let us follow its link.
    """
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CommandError(f"{failure}: {getattr(error, 'strerror', '') or error}.", 2) from error


@contextmanager
def _replacing(path: str, failure: str, *, exists: bool) -> Iterator[OutputFile]:
    if exists:
        with _opened(path, os.O_WRONLY, failure):
            pass  # it may be written: else it isn't replaced, either
    target = os.path.realpath(path) if os.path.islink(path) else path
    part = os.path.join(os.path.dirname(target), f".stretto-{secrets.token_hex(8)}")
    try:
        with _opened(part, _NEW, failure) as file:
            yield file
        try:
            os.replace(part, target)
        except OSError as error:
            raise CommandError(f"{failure}: {error.strerror}.", 2) from error
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise


@contextmanager
def _opened(path: str, flags: int, failure: str) -> Iterator[OutputFile]:
    try:
        fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CommandError(f"{failure}: {error.strerror}.", 2) from error
    file = cast("BinaryIO", open(fd, "wb"))  # noqa: SIM115
    try:
        output = OutputFile(file, failure)
        yield output
        output.flush()
    finally:
        with suppress(OSError):  # what couldn't be written is tried again, and was said
            file.close()
