from __future__ import annotations

import fcntl
import os

import pytest

from stretto.base.errors import CommandError
from stretto.cli import recover


def test_path_without_ring_extension_is_refused(tmp_path):
    with pytest.raises(CommandError, match=r"doesn't end in \.ring"):
        recover.run([str(tmp_path / "x")])


def test_missing_ring_file_is_an_error(tmp_path):
    with pytest.raises(CommandError, match="can't read"):
        recover.run([str(tmp_path / "x.ring")])


def test_ring_file_locked_by_a_recorder_is_refused(tmp_path):
    path = tmp_path / "x.ring"
    path.write_bytes(b"")
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        with pytest.raises(CommandError, match="in use"):
            recover.run([str(path)])
    finally:
        os.close(fd)


def test_missing_argument_is_refused():
    with pytest.raises(CommandError, match="--help"):
        recover.run([])
