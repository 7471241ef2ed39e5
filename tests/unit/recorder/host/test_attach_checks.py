"""Reasons why a recorder can't attach to a process."""

from __future__ import annotations

import os
import sys

import pytest

from stretto.base.errors import CommandError
from stretto.recorder.host import attach_checks


def test_version_of_a_process_is_found_by_its_files():
    assert attach_checks.python_version(os.getpid()) == sys.version_info[:2]
    assert attach_checks.python_version(2**31 - 1) is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(1, "Operation not permitted"), "the kernel doesn't allow it"),
        (RuntimeError("Remote debugging is not enabled in the remote process"), "switched off"),
        (RuntimeError("PyRuntime address lookup failed"), "it is no CPython 3.14 or newer"),
        (RuntimeError("something else"), "something else."),
        (RuntimeError("Can't find the main thread in the remote process."), "sub-interpreters"),
        (RuntimeError(), "RuntimeError."),
    ],
)
def test_failures_of_remote_exec_are_explained(error, reason):
    assert reason in str(attach_checks.explain(os.getpid(), error))


def test_missing_process_is_refused():
    with pytest.raises(CommandError, match="there is no such process"):
        attach_checks.check(2**31 - 1)


def test_refusal_of_a_process_of_another_version_contains_the_command_to_run(monkeypatch):
    monkeypatch.setattr(attach_checks, "python_version", lambda pid: (3, 99))
    with pytest.raises(CommandError, match=r"`python3.99 -m stretto record --attach \d+`"):
        attach_checks.check(os.getpid())


def test_failure_for_a_process_that_has_ended_says_so():
    assert "it has ended" in str(attach_checks.explain(2**31 - 1, RuntimeError("PyRuntime")))
