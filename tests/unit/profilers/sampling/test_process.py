"""The interpreter of a process is found, or the error says why not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stretto.base import proc_files
from stretto.profilers.sampling import process as module
from stretto.profilers.sampling.process import WALL, ProcessError, find_python
from tests.support.polling import wait_until
from tests.support.python_targets import ASLEEP, running


def test_version_and_interpreter_of_a_process_are_found() -> None:
    with running(ASLEEP) as program:
        process = find_python(program.pid)
        assert process.layout.version == sys.version_info[:2]
        assert len(process.heads()) == 1


def test_sub_interpreters_are_found() -> None:
    interpreters = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    source = f"import {interpreters} as i\nkept = i.create()\n{ASLEEP}"
    with running(source) as program:
        assert len(find_python(program.pid).heads()) == 2


def test_missing_process_is_an_error_with_its_id() -> None:
    with pytest.raises(ProcessError, match="There is no process 4194305"):
        find_python(4194305)


def test_program_without_python_is_refused() -> None:
    with subprocess.Popen(["sleep", "99"]) as program:
        try:
            with pytest.raises(ProcessError, match="no CPython interpreter"):
                find_python(program.pid)
        finally:
            program.kill()


def test_process_whose_parent_has_not_waited_is_refused() -> None:
    with subprocess.Popen(["true"]) as program:
        wait_until(lambda: proc_files.stat(program.pid)[:1] == [b"Z"])
        with pytest.raises(ProcessError, match="has ended"):
            find_python(program.pid)


@pytest.mark.parametrize(("user", "missing"), [(0, "CAP_SYS_PTRACE"), (1000, "ptrace_scope")])
def test_missing_right_is_explained(
    monkeypatch: pytest.MonkeyPatch, user: int, missing: str
) -> None:
    def refuse(pid: int, address: int, size: int) -> bytes:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(module, "read_process_memory", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(ProcessError, match=missing):
        find_python(os.getpid())


def test_sampler_of_an_ended_process_is_refused() -> None:
    with running(ASLEEP) as program:
        process = find_python(program.pid)
    with pytest.raises(ProcessError, match=f"There is no process {program.pid}"):
        process.sampler(WALL, 10**6)
