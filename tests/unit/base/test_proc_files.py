from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stretto.base import proc_files

ENDED = (1 << 22) + 1
"""Larger than the largest process id of Linux."""


def test_empty_words_of_a_command_line_are_omitted() -> None:
    code = "print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "", "é"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout
        program.stdout.readline()  # Before the end of the exec, the command line is empty.
        found = proc_files.words(program.pid, "cmdline")
        program.communicate(b"\n")
    assert found[1:] == ["-c", code, "é"]


def test_fields_of_proc_stat_begin_after_the_process_name() -> None:
    fields = proc_files.stat(os.getpid())
    assert (fields[0], int(fields[1])) == (b"R", os.getppid())


def test_effective_user_of_this_process_is_read() -> None:
    assert proc_files.effective_user(os.getpid()) == os.geteuid()


@pytest.mark.parametrize("name", ["cmdline", "status", "no such file"])
def test_files_of_an_ended_process_are_empty(name: str) -> None:
    assert proc_files.read(ENDED, name) == b""
    assert proc_files.words(ENDED, name) == []
    assert (proc_files.stat(ENDED), proc_files.effective_user(ENDED)) == ([], -1)


def test_descendants_are_children_and_their_children() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1); input()'])"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout
        (child,) = proc_files.children(program.pid) if program.stdout.readline() else []
        found = proc_files.descendants(os.getpid())
        program.communicate(b"\n")
    assert {program.pid, child} <= found
    assert (proc_files.children(ENDED), proc_files.descendants(ENDED)) == ([], set())
