"""Runs commands of Stretto during a test and reads their output."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from typing import IO, Self

DEADLINE_S = 60
"""The machine may be busy: for waiting, never for measuring."""


class Command:
    """A command `stretto ARGUMENTS` that runs during a `with` block.

    Args:
        arguments: The arguments of the command.
        environment: Environment variables added to those of this process.
    """

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "stretto", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self.said = ""
        self._lines: queue.Queue[str] = queue.Queue()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=(pipe,))
            for pipe in (self._process.stdout, self._process.stderr)
        ]
        self._open_pipes = len(self._readers)
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                self._lines.put(line)
        self._lines.put("")  # the empty line ends a wait in `line_with`

    def line_with(self, text: str) -> str:
        """Wait for the next line that contains `text`, on either stream."""
        while self._open_pipes or not self._lines.empty():
            try:
                line = self._lines.get(timeout=DEADLINE_S)
            except queue.Empty:
                break
            self.said += line
            self._open_pipes -= not line
            if text in line:
                return line.rstrip("\n")
        raise AssertionError(f"it never said {text!r}, but:\n{self.said}")

    def interrupt(self) -> int:
        """Send SIGINT as Ctrl-C does; return the exit code."""
        self._process.send_signal(signal.SIGINT)
        return self.wait()

    def wait(self) -> int:
        """Wait until the command ends; return its exit code. `said` is then the complete output."""
        code = self._process.wait(DEADLINE_S)
        for reader in self._readers:
            reader.join(DEADLINE_S)
        while not self._lines.empty():
            self.said += self._lines.get()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self.wait()
