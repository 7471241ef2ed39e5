from __future__ import annotations

import os
import stat

import pytest

from stretto.base.errors import CommandError
from stretto.recorder.host.output import Output


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace"


def test_streamed_trace_gets_its_final_name_at_the_end(path):
    output = Output(str(path), ring=False)
    os.write(output.fd(), b"data")
    assert os.listdir(path.parent) == ["trace.part"]
    output.finish()
    output.close()
    assert path.read_bytes() == b"data"
    assert os.listdir(path.parent) == ["trace"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["x.json", "x.JSON.gz"])
@pytest.mark.parametrize("ring", [True, False])
def test_refusal_of_a_json_name_contains_the_command_that_makes_json(tmp_path, ring, name):
    command = r"`stretto convert \S+/x.pftrace \S+/x.(json|JSON)` makes"
    with pytest.raises(CommandError, match=command):
        Output(str(tmp_path / name), ring=ring)
    assert list(tmp_path.iterdir()) == []


def test_ring_file_is_removed_when_the_trace_is_complete(path):
    output = Output(str(path), ring=True)
    assert os.listdir(path.parent) == ["trace.ring"]
    output.fd()
    assert sorted(os.listdir(path.parent)) == ["trace.part", "trace.ring"]
    output.finish()
    output.close()
    assert os.listdir(path.parent) == ["trace"]


def test_ring_file_is_kept_when_the_trace_cannot_be_written(path):
    output = Output(str(path), ring=True)
    output.fd()
    output.keep_ring_only()
    output.close()
    assert os.listdir(path.parent) == ["trace.ring"]


def test_trace_that_cannot_be_renamed_keeps_its_temporary_name(path):
    output = Output(str(path), ring=True)
    output.fd()
    path.mkdir()
    with pytest.raises(CommandError, match=r"stays in .*trace\.part': Is a directory"):
        output.finish()
    output.close()
    assert sorted(os.listdir(path.parent)) == ["trace", "trace.part"]


def test_error_for_a_removed_trace_file_names_the_ring_file(path):
    output = Output(str(path), ring=True)
    output.fd()
    os.unlink(output.part_path)
    with pytest.raises(CommandError, match=r"was removed.*stretto recover \S*trace\.ring -o"):
        output.finish()
    output.close()
    assert os.listdir(path.parent) == ["trace.ring"]
    os.unlink(output.ring_path)
    assert output.recovery_hint() == ""


@pytest.mark.parametrize("ring", [True, False])
def test_discarding_an_output_removes_all_files_of_the_output(path, ring):
    output = Output(str(path), ring=ring)
    output.discard()
    output.close()
    assert os.listdir(path.parent) == []


def test_old_trace_is_replaced_when_the_new_trace_is_complete(path):
    path.write_bytes(b"old")
    output = Output(str(path), ring=False)
    os.write(output.fd(), b"new")
    assert path.read_bytes() == b"old"
    output.finish()
    output.close()
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("ring", [True, False])
def test_second_recorder_with_the_same_output_is_refused(path, ring):
    output = Output(str(path), ring=ring)
    with pytest.raises(CommandError, match="another recording"):
        Output(str(path), ring=ring)
    output.close()
    second = Output(str(path), ring=ring)
    second.discard()
    second.close()


def test_unwritable_path_is_refused(path):
    with pytest.raises(CommandError, match=r"No such file.*-o"):
        Output(str(path / "x"), ring=True)
    with pytest.raises(CommandError, match="folder"):
        Output(str(path.parent), ring=True)


def test_device_is_written_directly():
    output = Output(os.devnull, ring=True)
    assert (output.direct, output.ring_fd, output.ring_path) == (True, -1, "")
    os.write(output.fd(), b"x")
    output.finish()
    assert output.size() == 0
    output.close()


def test_empty_path_is_refused():
    with pytest.raises(CommandError, match="file name"):
        Output("", ring=True)
