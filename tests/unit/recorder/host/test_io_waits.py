"""Whether system calls can be recorded, on a fake tracefs."""

from __future__ import annotations

from pathlib import Path

from stretto.recorder.host.io_waits import missing_right
from tests.support.fake_tracefs import mount


def test_right_is_missing_without_tracefs(tmp_path: Path) -> None:
    assert "tracefs is not mounted" in missing_right(str(tmp_path))
    folder = mount(tmp_path)
    assert missing_right(str(tmp_path)) == ""
    assert not list((folder / "instances").iterdir())


def test_right_is_missing_in_a_pid_namespace_because_ids_are_others_there(tmp_path: Path) -> None:
    mount(tmp_path)
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026532178]")
    assert "PID namespace" in missing_right(str(tmp_path))
