from __future__ import annotations

import os
import stat

import pytest

from stretto.base.errors import CommandError
from stretto.recorder.host.output import Output


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace"


def test_a_stream_has_its_name_at_the_end(path):
    output = Output(str(path), ring=False)
    os.write(output.fd(), b"data")
    assert os.listdir(path.parent) == ["trace.part"]
    output.finish()
    output.close()
    assert path.read_bytes() == b"data"
    assert os.listdir(path.parent) == ["trace"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_ring_goes_when_the_trace_is_there(path):
    output = Output(str(path), ring=True)
    assert os.listdir(path.parent) == ["trace.ring"]
    output.fd()
    assert sorted(os.listdir(path.parent)) == ["trace.part", "trace.ring"]
    output.finish()
    output.close()
    assert os.listdir(path.parent) == ["trace"]


def test_a_ring_stays_when_the_trace_cannot_be_written(path):
    output = Output(str(path), ring=True)
    output.fd()
    output.keep_ring_only()
    output.close()
    assert os.listdir(path.parent) == ["trace.ring"]


def test_a_trace_that_cannot_have_its_name_keeps_the_other(path):
    output = Output(str(path), ring=True)
    output.fd()
    path.mkdir()
    with pytest.raises(CommandError, match=r"stays in .*trace\.part': Is a directory"):
        output.finish()
    output.close()
    assert sorted(os.listdir(path.parent)) == ["trace", "trace.part"]


def test_a_trace_that_was_removed_is_still_in_the_ring(path):
    output = Output(str(path), ring=True)
    output.fd()
    os.unlink(output.part_path)
    with pytest.raises(CommandError, match=r"was removed.*stretto recover \S*trace\.ring -o"):
        output.finish()
    output.close()
    assert os.listdir(path.parent) == ["trace.ring"]
    os.unlink(output.ring_path)
    assert output.recovery() == ""


@pytest.mark.parametrize("ring", [True, False])
def test_nothing_is_left_of_what_never_began(path, ring):
    output = Output(str(path), ring=ring)
    output.discard()
    output.close()
    assert os.listdir(path.parent) == []


def test_an_old_trace_stays_until_the_new_one_is_whole(path):
    path.write_bytes(b"old")
    output = Output(str(path), ring=False)
    os.write(output.fd(), b"new")
    assert path.read_bytes() == b"old"
    output.finish()
    output.close()
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("ring", [True, False])
def test_one_recorder_at_a_time(path, ring):
    output = Output(str(path), ring=ring)
    with pytest.raises(CommandError, match="another recording"):
        Output(str(path), ring=ring)
    output.close()
    second = Output(str(path), ring=ring)
    second.discard()
    second.close()


def test_what_cannot_be_written(path):
    with pytest.raises(CommandError, match=r"No such file.*-o"):
        Output(str(path / "x"), ring=True)
    with pytest.raises(CommandError, match="folder"):
        Output(str(path.parent), ring=True)


def test_devices_are_written_directly():
    output = Output(os.devnull, ring=True)
    assert (output.direct, output.ring_fd, output.ring_path) == (True, -1, "")
    os.write(output.fd(), b"x")
    output.finish()
    assert output.size() == 0
    output.close()


def test_an_empty_name_is_refused():
    with pytest.raises(CommandError, match="file name"):
        Output("", ring=True)
