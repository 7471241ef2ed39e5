"""The file that contains the daemon's process id."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stretto.base.errors import CommandError
from stretto.cli.traced.pid_file import PidFile


def test_pid_file_contains_the_process_id_until_removed(tmp_path: Path):
    path = tmp_path / "pid"
    pid_file = PidFile(str(path))
    assert path.read_text() == f"{os.getpid()}\n"
    pid_file.remove()
    pid_file.remove()
    assert not path.exists()


@pytest.mark.parametrize("left", ["12345\n", ""])
def test_pid_file_of_an_earlier_daemon_is_replaced(tmp_path: Path, left: str):
    path = tmp_path / "pid"
    path.write_text(left)
    PidFile(str(path))
    assert path.read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("text", ["my thesis", "1" * 100])
def test_file_without_a_process_id_is_not_replaced(tmp_path: Path, text: str):
    path = tmp_path / "thesis"
    path.write_text(text)
    with pytest.raises(CommandError, match="isn't a pid file"):
        PidFile(str(path))
    assert path.read_text() == text


def test_symbolic_link_as_pid_file_is_not_followed(tmp_path: Path):
    (tmp_path / "target").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(CommandError, match="can't write"):
        PidFile(str(tmp_path / "link"))
    assert (tmp_path / "target").read_text() == "1"


def test_pid_file_of_another_process_is_not_removed(tmp_path: Path):
    path = tmp_path / "pid"
    pid_file = PidFile(str(path))
    path.write_text("1\n")
    pid_file.remove()
    assert path.read_text() == "1\n"


def test_missing_folder_is_an_error(tmp_path: Path):
    with pytest.raises(CommandError, match="can't write the pid file"):
        PidFile(str(tmp_path / "no" / "pid"))
