"""Tells the standard library and installed packages from a program's own code, by their paths."""

from __future__ import annotations

INSTALLED_FOLDERS = ("/lib/python3.", "/site-packages/", "/dist-packages/")
"""A path that contains one of them belongs to installed code."""


def is_installed(path: str) -> bool:
    """Whether code with this `co_filename` is installed; code without a file is not."""
    return path.startswith("<frozen ") or any(part in path for part in INSTALLED_FOLDERS)
