"""Runs Perfetto's native v56 programs in a newer Debian, which is installed below build/."""

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
    """Install the newer Debian; return the reason why it can't be used, or None.

    The installation takes minutes: call this function from a fixture, not during collection.
    """
    if not PROGRAM.exists():
        return f"no {PROGRAM.name} in {FOLDER}; set STRETTO_ORACLE"
    if os.geteuid() != 0:
        return "only root enters the newer Debian"
    DEBIAN.parent.mkdir(exist_ok=True)
    with open(f"{DEBIAN}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # only one test process installs
        return _make()


def _make() -> str | None:
    if (DEBIAN / ".made").exists():
        return None
    made = subprocess.run([PROGRAM, "make", DEBIAN], capture_output=True, text=True)
    return (made.stderr.strip() or "newer_debian make failed") if made.returncode else None


def command(program: str, folder: Path, *shared: Path) -> list[str]:
    """Return the command line that runs a program of the newer Debian.

    Args:
        program: Name of the program.
        folder: The working directory.
        shared: Other folders that the program can access, at the same paths.
    """
    bind = ":".join(map(str, (folder, *shared)))
    enter = ["env", f"BIND={bind}", str(PROGRAM), "run", str(DEBIAN)]
    return [*enter, "env", "-C", str(folder), program]
