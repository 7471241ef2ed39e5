"""Instances of tracefs that a recording has left behind."""

from __future__ import annotations

import os

from stretto.probes.tracefs import PREFIX, Tracefs


def left_behind() -> list[str]:
    """Return our instances whose process has ended. Others belong to recordings that run now."""
    names = [name for name in Tracefs("/").names("instances") if name.startswith(PREFIX)]
    pids = {name: name.removeprefix(PREFIX).partition("-")[0] for name in names}
    return [name for name, pid in pids.items() if not os.path.exists(f"/proc/{pid}")]
