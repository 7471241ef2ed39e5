"""Errors of reading a trace become errors of a verb, with the exit status that fits."""

from __future__ import annotations

import errno
import os

import pytest

from stretto.base.errors import CommandError, DecodeError
from stretto.cli.trace_reading import reading


@pytest.mark.parametrize(
    ("error", "message", "status"),
    [
        (DecodeError("it is no trace"), "query: can't read 'a.pftrace': it is no trace.", 1),
        (ModuleNotFoundError("install duckdb"), "query: install duckdb.", 1),
        (
            FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)),
            "query: can't read 'a.pftrace': No such file or directory.",
            2,
        ),
        (OSError("no file handle"), "query: can't read 'a.pftrace': no file handle.", 2),
    ],
)
def test_error_of_reading_is_an_error_of_the_verb(
    error: Exception, message: str, status: int
) -> None:
    with pytest.raises(CommandError) as raised, reading("query", "a.pftrace"):
        raise error
    assert str(raised.value) == message
    assert raised.value.exit_code == status


@pytest.mark.parametrize("kind", [BrokenPipeError, KeyError])
def test_other_errors_are_unchanged(kind: type[Exception]) -> None:
    with pytest.raises(kind), reading("query", "a.pftrace"):
        raise kind
