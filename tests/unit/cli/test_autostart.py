"""`stretto autostart` installs, finds and removes its .pth file."""

from __future__ import annotations

import os
import site
import sysconfig
from pathlib import Path

import pytest

from stretto.cli.main import main

NAME = "stretto-autostart.pth"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    """Return three site-packages folders: an unused one, the environment's and the user's."""
    other, own, user = (tmp_path / name for name in ("other", "own", "user"))
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(other), str(own)])
    monkeypatch.setattr(site, "getusersitepackages", lambda: str(user))
    monkeypatch.setattr(site, "ENABLE_USER_SITE", True)
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(own))
    return other, own, user


def test_autostart_file_is_installed_reported_and_uninstalled_repeatedly(
    folders: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    file = folders[1] / NAME
    assert main(["autostart", "--status"]) == 1
    for _ in range(2):
        assert main(["autostart", "--install"]) == 0
        assert file.read_text().count("\n") == 1
        assert [each.name for each in folders[1].iterdir()] == [NAME]
    assert main(["autostart", "--status"]) == 0
    assert str(file) in capsys.readouterr().out
    for _ in range(2):
        assert main(["autostart", "--uninstall"]) == 0
        assert not file.exists()
    assert main(["autostart", "--status"]) == 1
    assert capsys.readouterr().out.endswith("not installed\n")


def test_installed_older_version_is_replaced_in_its_folder(
    folders: tuple[Path, Path, Path],
) -> None:
    file = folders[2] / NAME
    file.parent.mkdir()
    file.write_text("import something_old\n")
    assert main(["autostart", "--install"]) == 0
    assert "stretto.connect" in file.read_text()
    assert not folders[1].exists()


def test_uninstall_removes_the_file_from_all_folders(folders: tuple[Path, Path, Path]) -> None:
    for folder in folders:
        folder.mkdir()
        (folder / NAME).write_text("")
    assert main(["autostart", "--uninstall"]) == 0
    assert not any((folder / NAME).exists() for folder in folders)


def test_next_folder_is_used_if_one_is_not_writable(
    folders: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    other, own, user = folders
    own.write_text("no folder")
    assert main(["autostart", "--install"]) == 0
    assert (other / NAME).exists()
    (other / NAME).unlink()
    other.rmdir()
    other.write_text("no folder")
    user.write_text("no folder")
    assert main(["autostart", "--install"]) == 1
    assert "Use a virtual environment" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--install", "--status"], ["now"]])
def test_invalid_arguments_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["autostart", *arguments]) == 2
    assert "`stretto autostart --help` shows how" in capsys.readouterr().err


def test_failed_install_leaves_no_file(
    folders: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", fail)
    monkeypatch.setattr(os, "replace", fail)
    assert main(["autostart", "--install"]) == 1
    assert not any(file for folder in folders if folder.exists() for file in folder.iterdir())
