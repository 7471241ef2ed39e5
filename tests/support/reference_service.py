"""Perfetto's tracing service, from the package perfnetto, as a process during a test."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.support.oracle import FOLDER

PROGRAM = FOLDER / "reference_service.py"


def missing() -> str | None:
    """Return the reason why Perfetto's service isn't available, or None."""
    if not PROGRAM.exists():
        return f"no {PROGRAM.name} in {FOLDER}; set STRETTO_ORACLE"
    if importlib.util.find_spec("perfnetto") is None:
        return "Perfetto's service needs the package perfnetto (CPython 3.12 or 3.13, x86-64)"
    return None


class ReferenceService:
    """Perfetto's service, which runs during a `with` block and listens when the block begins.

    Args:
        producers: Path of the producer socket.
        consumers: Path of the consumer socket.
    """

    def __init__(self, producers: Path, consumers: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(producers), str(consumers)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        assert "ready" in self.process.stdout.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
