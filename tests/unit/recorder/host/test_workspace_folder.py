from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from stretto.base.errors import CommandError
from stretto.recorder.host import workspace_folder
from stretto.recorder.host.options import HeapOptions, RecordingOptions
from stretto.recorder.workspace import VARIABLE, Workspace


@pytest.fixture
def place(monkeypatch):
    """Return a folder for workspaces; tmp_path may be too long for a workspace's socket."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture
def workspace(place):
    made = workspace_folder.create({"include": ["a\u00e4", "b c"], "max_depth": ["3"]})
    yield made
    workspace_folder.remove(made)


def test_folder_is_accessible_to_its_owner_only(workspace, place):
    assert os.path.dirname(workspace.folder) == str(place)
    assert stat.S_IMODE(os.stat(workspace.folder).st_mode) == 0o700


def test_options_are_read_as_they_were_written(workspace):
    assert workspace.read_options() == {"include": ["a\u00e4", "b c"], "max_depth": ["3"]}


def test_workspace_is_found_by_the_environment(workspace, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/mine")
    environment = workspace_folder.environment(workspace, RecordingOptions())
    assert environment["PYTHONPATH"] == f"{workspace.site}:/mine"
    monkeypatch.setenv(VARIABLE, environment[VARIABLE])
    found = Workspace.from_environment()
    assert found is not None
    assert found.producer_socket == workspace.producer_socket
    monkeypatch.delenv(VARIABLE)
    assert Workspace.from_environment() is None


def test_empty_pythonpath_is_not_appended(workspace, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "")
    assert (
        workspace_folder.environment(workspace, RecordingOptions())["PYTHONPATH"] == workspace.site
    )


def test_preloaded_library_is_added_to_others(workspace, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "/mine.so")
    options = RecordingOptions(native_heap=HeapOptions(4096, 1000, at_max=False))
    environment = workspace_folder.environment(workspace, options)
    assert environment["LD_PRELOAD"] == f"{workspace_folder.MALLOC_LIBRARY}:/mine.so"
    assert environment["STRETTO_NATIVE_HEAP"] == f"4096:{workspace.native_heap}"
    plain = workspace_folder.environment(workspace, RecordingOptions())
    assert plain["LD_PRELOAD"] == "/mine.so"
    assert "STRETTO_NATIVE_HEAP" not in plain


def test_line_that_is_noted_twice_is_read_once(workspace):
    workspace.note(["one", "two"])
    workspace.note(["one"])
    assert workspace.read_notes() == {os.getpid(): ["one", "two"]}


def test_note_after_removal_of_the_workspace_is_ignored(workspace):
    workspace_folder.remove(workspace)
    workspace.note(["one"])
    assert not os.path.exists(workspace.folder)


def test_error_names_tmpdir_if_no_folder_is_writable(monkeypatch, tmp_path):
    monkeypatch.setattr(workspace_folder, "_candidates", lambda: [str(tmp_path / "missing")])
    with pytest.raises(CommandError, match="TMPDIR"):
        workspace_folder.create({})


def test_folder_of_a_killed_recorder_is_removed(workspace, place):
    left = place / f"{workspace_folder.PREFIX}left"
    left.mkdir()
    workspace_folder.sweep()
    assert left.exists(), "it may be about to get its lock"
    (left / workspace_folder.LOCK).write_text("")
    (place / "another").mkdir()
    (place / "another" / workspace_folder.LOCK).write_text("")
    workspace_folder.sweep()
    assert not left.exists()
    assert os.path.exists(workspace.folder), "its recorder lives"
    assert (place / "another").exists()


def test_old_folder_whose_recorder_was_killed_before_it_got_the_lock_is_removed(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(workspace_folder, "_candidates", lambda: [str(tmp_path)])
    old, new = (
        tmp_path / f"{workspace_folder.PREFIX}old",
        tmp_path / f"{workspace_folder.PREFIX}new",
    )
    for each in (old, new):
        each.mkdir(mode=0o700)
        (each / workspace_folder.NEW_LOCK).write_text("")
    os.utime(old, (0, 0))
    workspace_folder.sweep()
    assert not old.exists()
    assert new.exists(), "it may be about to get its lock"


@pytest.mark.parametrize("name", ["stretto-traces", f"{workspace_folder.PREFIX}traces"])
def test_folder_with_files_of_the_user_is_not_removed(tmp_path, monkeypatch, name):
    monkeypatch.setattr(workspace_folder, "_candidates", lambda: [str(tmp_path)])
    folder = tmp_path / name
    folder.mkdir()
    (folder / "app.pftrace").write_text("")
    os.utime(folder, (0, 0))
    workspace_folder.sweep()
    assert (folder / "app.pftrace").exists()


def test_removal_of_old_folders_follows_no_symbolic_link(tmp_path, monkeypatch):
    place, target = tmp_path / "place", tmp_path / f"{workspace_folder.PREFIX}target"
    place.mkdir()
    monkeypatch.setattr(workspace_folder, "_candidates", lambda: [str(place)])
    target.mkdir()
    (target / "precious").write_text("")
    os.utime(target, (0, 0))
    (place / f"{workspace_folder.PREFIX}link").symlink_to(target)
    (place / f"{workspace_folder.PREFIX}locked").mkdir()
    (place / f"{workspace_folder.PREFIX}locked" / workspace_folder.LOCK).symlink_to(
        target / "precious"
    )
    os.utime(place / f"{workspace_folder.PREFIX}locked", (0, 0))
    workspace_folder.sweep()
    assert (target / "precious").exists()
    assert (place / f"{workspace_folder.PREFIX}link").is_symlink()
    assert (place / f"{workspace_folder.PREFIX}locked").exists()


def test_folder_of_another_user_is_not_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(workspace_folder, "_candidates", lambda: [str(tmp_path)])
    left = tmp_path / f"{workspace_folder.PREFIX}left"
    left.mkdir()
    os.utime(left, (0, 0))
    mine = os.geteuid()
    monkeypatch.setattr(workspace_folder.os, "geteuid", lambda: mine + 1)
    workspace_folder.sweep()
    assert left.exists()


def test_folder_that_is_being_created_is_not_removed_as_stale(tmp_path, monkeypatch):
    """Another recorder removes old folders before each step of a folder's creation."""
    monkeypatch.setattr(workspace_folder, "_candidates", lambda: [str(tmp_path)])
    steps, sweeping = [], []

    def sweep_before(module, name):
        function = getattr(module, name)

        def step(*arguments, **named):
            if not sweeping:
                steps.append(name)
                sweeping.append(name)
                workspace_folder.sweep()
                sweeping.clear()
            return function(*arguments, **named)

        monkeypatch.setattr(module, name, step)

    for module, name in (
        (os, "open"),
        (os, "mkdir"),
        (os, "rename"),
        (workspace_folder.fcntl, "flock"),
    ):
        sweep_before(module, name)
    made = workspace_folder.create({})
    assert {"open", "flock", "rename", "mkdir"} <= set(steps)
    assert os.path.isdir(made.site)
    workspace_folder.remove(made)


def test_folder_whose_path_is_too_long_for_a_socket_is_skipped(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("x" * 90)))
    assert all(len(place) < 80 for place in workspace_folder._candidates())
