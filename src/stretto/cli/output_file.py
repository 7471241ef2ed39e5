"""The output file of a verb that writes a trace.

    new, or a regular file   .stretto-RANDOM in its folder ──(complete)──> replaces it atomically
    FIFO, device             written directly
    -                        standard output

So the file never has a partial result, and two writers don't mix. After a failure, Ctrl-C, SIGTERM
or SIGHUP, the old file is unchanged. For a symbolic link, the target is replaced. The result is
readable by its owner only (0600), independent of the old file's mode. An old file without write
permission is refused.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

from stretto.base.errors import CommandError
from stretto.base.portable import BINARY, CLOSED_ON_EXEC, NOT_THROUGH_LINKS, is_broken_pipe
from stretto.cli.ending_signals import ending_by_signals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

STANDARD = "-"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOT_THROUGH_LINKS


class OutputFile:
    """Writes a result to a file. Raises BrokenPipeError if the file is a pipe without a reader.

    Args:
        file: The file to write to.
        failure: The beginning of error messages.
    """

    def __init__(self, file: BinaryIO, failure: str) -> None:
        self._file = file
        self._failure = failure

    def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            CommandError: Writing failed, for example because the disk is full.
        """
        with _writing(self._failure):
            self._file.write(data)

    def flush(self) -> None:
        """Write buffered bytes; raises like `write`."""
        with _writing(self._failure):
            self._file.flush()


@contextmanager
def _writing(failure: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if is_broken_pipe(error):
            raise BrokenPipeError from error
        raise CommandError(f"{failure}: {error.strerror or error}.") from error


@contextmanager
def open_output(
    verb: str, path: str, *, binary: bool, source: os.stat_result | None = None
) -> Iterator[OutputFile]:
    """Open an output file; if the block fails, the old file is unchanged.

    Args:
        verb: The verb, for error messages.
        path: The path of the result.
        binary: Whether the result is binary, and must not be written to a terminal.
        source: The status of the input file, which must not be overwritten.

    Raises:
        CommandError: The file can't be written.
    """
    if path == STANDARD:
        with _standard(verb, binary=binary) as file:
            yield file
        return
    failure = f"{verb}: can't write {path!r}"
    there = _status(path, failure)
    if there is not None and source is not None and os.path.samestat(there, source):
        raise CommandError(f"{verb}: {path!r} is the input: choose another name for the result.", 2)
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
    """Return the status of a file, following links; None if it doesn't exist.

    Raises:
        CommandError: The path is invalid, or a link can't be followed.
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
            pass  # Opening checks the file's write permission. Replacing a file doesn't need it.
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
        fd = os.open(path, flags | CLOSED_ON_EXEC | BINARY, 0o600)
    except OSError as error:
        raise CommandError(f"{failure}: {error.strerror}.", 2) from error
    file = cast("BinaryIO", open(fd, "wb"))  # noqa: SIM115
    try:
        output = OutputFile(file, failure)
        yield output
        output.flush()
    finally:
        with suppress(OSError):
            file.close()  # close() retries failed writes, which were reported already.
