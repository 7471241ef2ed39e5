from __future__ import annotations

import fcntl
import os

import pytest

from stretto.base.errors import CommandError
from stretto.cli import recover


def test_the_name_of_the_trace_follows_from_the_ring(tmp_path):
    with pytest.raises(CommandError, match=r"doesn't end in \.ring"):
        recover.run([str(tmp_path / "x")])


def test_a_missing_ring(tmp_path):
    with pytest.raises(CommandError, match="can't read"):
        recover.run([str(tmp_path / "x.ring")])


def test_a_ring_that_a_recorder_holds(tmp_path):
    path = tmp_path / "x.ring"
    path.write_bytes(b"")
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        with pytest.raises(CommandError, match="in use"):
            recover.run([str(path)])
    finally:
        os.close(fd)


def test_wrong_arguments():
    with pytest.raises(CommandError, match="--help"):
        recover.run([])
