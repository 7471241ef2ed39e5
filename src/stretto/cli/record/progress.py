"""The progress line on the terminal while a program is recorded.

The program uses the same terminal. So the line is shown only if the program has written nothing for
some seconds, isn't reading a line, and hasn't switched the terminal's mode. The cursor stays at the
start of the line, so that the program's next output replaces the line.
"""

from __future__ import annotations

import os

from stretto.cli.record.summary import plural, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

STDERR = 2
SILENT_LOOKS = 2
_READS_STDIN = "0 0x0 "
"""The start of /proc/PID/syscall while a process waits in read(0, …)."""


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _written(pid: int) -> str:
    """Return the line of /proc/PID/io with the number of bytes that a process has written."""
    return "".join(line for line in _read(f"/proc/{pid}/io").splitlines() if "wchar" in line)


class Progress:
    """Shows the progress line.

    Args:
        quiet: never show it.
        fd: the terminal; standard error by default.

    Attributes:
        on: whether the line can be shown.
    """

    def __init__(self, *, quiet: bool, fd: int | None = None) -> None:
        self._fd = STDERR if fd is None else fd
        self.on = not quiet and os.isatty(self._fd)
        self._written: dict[int, str] = {}
        self._silent_looks = 0
        self._visible = False

    def update(self, program: int, pids: Iterable[int], seconds: float, collected: int) -> None:
        """Show the state, if the terminal is free; called every second.

        Args:
            program: the pid of the program.
            pids: the pids of all processes that may write to the terminal.
            seconds: the time since the start.
            collected: the number of bytes of trace data so far.
        """
        if not self.on:
            return
        self._check_output({program, *pids})
        if self._silent_looks < SILENT_LOOKS or not self._is_free(program):
            return
        processes = plural(len(self._written), "process")
        text = f"stretto: recording, {seconds:.0f} s, {processes}, {size_text(collected)}"
        self._write(f"\r{text}\x1b[K\r")
        self._visible = True

    def clear(self) -> None:
        """Remove the line."""
        if self._visible and self._silent_looks:
            self._write("\r\x1b[K")
        self._visible = False

    def _check_output(self, pids: Iterable[int]) -> None:
        written = {pid: text for pid in pids if (text := _written(pid))}
        if written == self._written:
            self._silent_looks += 1
        else:
            self._silent_looks = 0
            self._visible = False  # The program's output has overwritten the line.
        self._written = written

    def _is_free(self, program: int) -> bool:
        import termios  # Only a terminal needs this module.

        try:
            local_modes = termios.tcgetattr(self._fd)[3]
            foreground = os.tcgetpgrp(self._fd) == os.getpgrp()
        except (termios.error, OSError):
            return False
        line_mode = local_modes & termios.ICANON and local_modes & termios.ECHO
        reads = _read(f"/proc/{program}/syscall").startswith(_READS_STDIN)
        return bool(line_mode) and foreground and not reads

    def _write(self, text: str) -> None:
        try:
            os.write(self._fd, text.encode())
        except OSError:
            self.on = False
