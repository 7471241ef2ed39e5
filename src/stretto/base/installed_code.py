"""Tells the standard library and installed packages from a program's own code, by their paths."""

from __future__ import annotations

INSTALLED_FOLDERS = ("/lib/python3.", "/site-packages/", "/dist-packages/")
"""A path that contains one of them belongs to installed code."""


def is_installed(path: str) -> bool:
    """Whether code with this `co_filename` is installed; code without a file is not."""
    return path.startswith("<frozen ") or any(part in path for part in INSTALLED_FOLDERS)


ONLY_OWN_CODE = "only the program's own code"
"""The instant of a process whose functions are recorded with `--my-code`."""

NOT_OWN_CODE = (
    "calls within installed code (--my-code): their time is in the functions that your code calls"
)
"""What `--my-code` leaves out, as summaries say it."""
