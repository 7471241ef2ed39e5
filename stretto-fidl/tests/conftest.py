"""Fixtures of the stretto-fidl tests, which also use the conftest.py of the repository."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

pytest.register_assert_rewrite("fidl_support")

SOURCES = Path(__file__).parents[1] / "src"


def stretto_fidl_folder() -> Path:
    """Return the folder of the tested package, without importing the package."""
    spec = importlib.util.find_spec("stretto_fidl")
    if spec is None or not spec.submodule_search_locations:
        raise pytest.UsageError("stretto_fidl is not installed: run `make install`")
    return Path(spec.submodule_search_locations[0])


def pytest_configure() -> None:
    """Check that tests run against the installed package, not the sources beside it."""
    folder = stretto_fidl_folder()
    if os.environ.get("STRETTO_TEST_INSTALLED") and folder.is_relative_to(SOURCES):
        raise pytest.UsageError(f"stretto_fidl was imported from {folder}: change PYTHONPATH")
