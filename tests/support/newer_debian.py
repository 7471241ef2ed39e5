"""Perfetto's native v56 programs, from a newer Debian below build/."""

from __future__ import annotations

import fcntl
import functools
import os
import subprocess
from pathlib import Path

from tests.support.oracle import FOLDER
from tests.support.sources import ROOT

PROGRAM = FOLDER / "newer_debian"
DEBIAN = ROOT / "build" / "newer_debian"


@functools.cache
def missing() -> str | None:
    """The reason why they can't run here, or None; installs the newer Debian.

    Takes minutes: call it from a fixture, not while tests are collected.
    """
    if not PROGRAM.exists():
        return f"no {PROGRAM.name} in {FOLDER}; set STRETTO_ORACLE"
    if os.geteuid() != 0:
        return "only root enters the newer Debian"
    DEBIAN.parent.mkdir(exist_ok=True)
    with open(f"{DEBIAN}.lock", "w") as lock:
        fcntl.flock(
            lock, fcntl.LOCK_EX
        )  # Several test processes run at once: one of them installs it.
        return _make()


def _make() -> str | None:
    if (DEBIAN / ".made").exists():
        return None
    made = subprocess.run([PROGRAM, "make", DEBIAN], capture_output=True, text=True)
    return (made.stderr.strip() or "newer_debian make failed") if made.returncode else None


def command(program: str, folder: Path, *shared: Path) -> list[str]:
    """Return the command line that runs a program of the newer Debian.

    Args:
        program: its name.
        folder: the working directory.
        shared: further folders that it can access at their own paths.
    """
    bind = ":".join(map(str, (folder, *shared)))
    enter = ["env", f"BIND={bind}", str(PROGRAM), "run", str(DEBIAN)]
    return [*enter, "env", "-C", str(folder), program]
