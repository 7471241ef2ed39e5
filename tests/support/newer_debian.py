"""Perfetto's native v56 programs, out of a newer Debian below build/."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.oracle import FOLDER
from tests.support.sources import ROOT

PROGRAM = FOLDER / "newer_debian"
DEBIAN = ROOT / "build" / "newer_debian"


def missing() -> str | None:
    """Why they can't run here, or None if they can; makes the newer Debian."""
    if not PROGRAM.exists():
        return f"no {PROGRAM.name} in {FOLDER}; set STRETTO_ORACLE"
    if not (DEBIAN / ".made").exists():
        made = subprocess.run([PROGRAM, "make", DEBIAN], capture_output=True, text=True)
        if made.returncode:
            return made.stderr.strip() or "newer_debian make failed"
    return None if os.geteuid() == 0 else "only root enters the newer Debian"


def command(program: str, folder: Path, *shared: Path) -> list[str]:
    """The command line that runs a program of the newer Debian.

    Args:
        program: its name.
        folder: the working directory.
        shared: further folders that it sees at their own paths.
    """
    bind = ":".join(map(str, (folder, *shared)))
    enter = ["env", f"BIND={bind}", str(PROGRAM), "run", str(DEBIAN)]
    return [*enter, "env", "-C", str(folder), program]
