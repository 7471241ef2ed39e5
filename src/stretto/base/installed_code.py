"""Tells the standard library and installed packages from a program's own code, by their paths."""

from __future__ import annotations

import os

INSTALLED_FOLDERS = ("/lib/python3.", "/site-packages/", "/dist-packages/")
"""A path that contains one of them belongs to installed code."""


def is_installed(path: str) -> bool:
    """Whether code with this `co_filename` is installed; code without a file is not."""
    return path.startswith("<frozen ") or any(part in path for part in INSTALLED_FOLDERS)


def is_body(name: str, file: str) -> bool:
    """Whether the name of a function in this file is that of a module's body."""
    return name.startswith("import ") or name in ("<module>", os.path.basename(file))


def is_own_function(name: str, file: str) -> bool:
    """Whether a function is one of the program's own; neither C functions nor module bodies are."""
    return not (not file or file.startswith("<") or is_installed(file) or is_body(name, file))


ONLY_OWN_CODE = "only the program's own code"
"""The instant of a process whose functions are recorded with `--my-code`."""

NOT_OWN_CODE = (
    "calls within installed code (--my-code): their time is in the functions that your code calls"
)
"""What `--my-code` leaves out, as summaries say it."""
