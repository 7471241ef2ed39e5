"""Starts the two services to compare: Stretto's, and Perfetto's v56 from a newer Debian."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from tests.support import newer_debian


def listens(path: str) -> bool:
    """Return whether a process listens at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(path) == 0


class Service:
    """Run a service in a process group of its own during a `with` block.

    Args:
        folder: Folder for the sockets and the log of the service.
        command: Command that runs the service.
        environment: Additional environment variables.
    """

    def __init__(self, folder: Path, command: list[str], **environment: str) -> None:
        folder.mkdir(exist_ok=True)
        self.sockets = str(folder / "producer"), str(folder / "consumer")
        variables = {
            **os.environ,
            "PERFETTO_PRODUCER_SOCK_NAME": self.sockets[0],
            "PERFETTO_CONSUMER_SOCK_NAME": self.sockets[1],
            **environment,
        }
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                command, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while not all(map(listens, self.sockets)):
            assert self.process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, "the service doesn't listen"
            time.sleep(0.01)  # sleep: polls until the service listens

    @property
    def lives(self) -> bool:
        """Return whether the service runs."""
        return self.process.poll() is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.lives:
            os.killpg(self.process.pid, 9)
        self.process.wait()


def perfetto(folder: Path) -> Service:
    """Run Perfetto's service."""
    folder.mkdir(exist_ok=True)
    return Service(folder, newer_debian.command("traced", folder))


def ours(folder: Path, **environment: str) -> Service:
    """Run Stretto's service."""
    return Service(folder, [sys.executable, "-m", "stretto", "traced"], **environment)
