"""The verb `top`."""

from __future__ import annotations

import select
import shutil
import sys
import termios
import threading
import time
import tty
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stretto.cli.attach import (
    MODES,
    add_sampling_options,
    duration,
    idle_hint,
    settings_of,
    stop_by_signal,
)
from stretto.cli.text_table import as_table
from stretto.cli.verb_parser import VerbParser
from stretto.profilers.sampling.command_line import command_line
from stretto.profilers.sampling.profile import FunctionSamples, Profile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stretto.profilers.sampling.interned_stacks import FunctionKey
    from stretto.profilers.sampling.settings import Settings

DESCRIPTION = """\
Show live in which Python functions a running process, and its children, spend their time.

  stretto top 4711
  stretto top 4711 --wall           waiting threads, too
  stretto top 4711 --native         C functions, too
  stretto top 4711 -t 10s > FILE    without a terminal: a table every second

The process needs no preparation. It is neither stopped (unless with --native) nor changed: its
memory is read while it runs. CPython 3.11 to 3.15 is supported, in any environment of this machine.
"""

EPILOG = """\
own %, total %    the share of the last second's samples: in the function, or also in what it called
own s             the time in the function since the start
Press q or Ctrl-C to end. `stretto attach PID` records the samples into a trace.
"""

_HOME_AND_CLEAR = "\x1b[H\x1b[J"
_PERIOD_S = 1.0
_POLL_S = 0.1
_HEADER_LINES = 6


def run(arguments: Sequence[str]) -> int:
    """Run `stretto top`."""
    parser = VerbParser("top", DESCRIPTION, epilog=EPILOG)
    add_sampling_options(parser)
    parser.add_argument("-t", "--time", type=duration, metavar="10s", help="end after this time")
    options = parser.parse_args(list(arguments))
    settings = settings_of(options)
    profile = Profile(settings, lambda _packets: None)
    profile.add(options.pid)
    stop_by_signal(profile)
    runs = threading.Thread(target=profile.run, args=(options.pid, options.time), daemon=True)
    runs.start()
    view = View(options.pid, settings)
    with _keys() as pressed_q:
        while runs.is_alive():
            _wait(runs, profile, pressed_q)
            view.show(profile)
    return 0


def _wait(runs: threading.Thread, profile: Profile, pressed_q: PressedQ) -> None:
    """Wait until the next table is due, or the profile has ended."""
    end = time.monotonic() + _PERIOD_S
    while runs.is_alive() and time.monotonic() < end:
        runs.join(_POLL_S)
        if pressed_q():
            profile.stop()


class View:
    """The tables of one process: what was sampled between two calls of `show`."""

    def __init__(self, pid: int, settings: Settings) -> None:
        self._title = f"{pid}: {command_line(pid)}"
        self._settings = settings
        self._before: dict[FunctionKey, FunctionSamples] = {}

    def show(self, profile: Profile) -> None:
        """Print a table; on a terminal, in the place of the previous one."""
        text = self.table(profile.functions())
        if sys.stdout.isatty():
            columns, lines = shutil.get_terminal_size()
            cut = [line[: columns - 1] for line in text.splitlines()[: lines - 1]]
            text = _HOME_AND_CLEAR + "\n".join(cut) + "\n"
        print(text, flush=True)

    def table(self, functions: Sequence[FunctionSamples]) -> str:
        """Return the text of a table, and keep its numbers to compare the next one with them.

        Args:
            functions: How often each function was sampled since the start. Each sample has one
                innermost call, so the number of samples is the sum of `own`.
        """
        changes = []
        for row in functions:
            before = self._before.get(row.key) or FunctionSamples(row.key, 0, 0)
            changes.append((row.own - before.own, row.total - before.total, row))
        self._before = {row.key: row for row in functions}
        changes.sort(key=lambda each: (-each[0], -each[1], each[2].key))
        sampled = sum(own for own, _, _ in changes)
        seconds = self._settings.period_ns / 1e9
        rows = [
            (
                _percent(own, sampled),
                _percent(total, sampled),
                f"{row.own * seconds:.2f}",
                row.key.function,
                row.key.filename,
            )
            for own, total, row in changes
        ]
        head = (
            f"{self._title}\n{sampled:,} samples of {MODES[self._settings.mode]} "
            f"since the last table\n{idle_hint(self._settings, sampled)}\n"
        )
        columns = ("own %", "total %", "own s", "function", "file")
        limit = shutil.get_terminal_size().lines - _HEADER_LINES
        return head + as_table(columns, rows[: max(limit, 1)], right=columns[:3])


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "0.0"


class PressedQ:
    """Returns, when it is called, whether the key q was pressed.

    Args:
        fd: A terminal that delivers single keys; None if there is none.
    """

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def __call__(self) -> bool:
        if self._fd is None or not select.select([self._fd], [], [], 0)[0]:
            return False
        return sys.stdin.read(1) in ("q", "Q")


@contextmanager
def _keys() -> Iterator[PressedQ]:
    """Within the block, let the terminal deliver single keys."""
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stdout.isatty():
        yield PressedQ(None)
        return
    fd = sys.stdin.fileno()
    old = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd)
        yield PressedQ(fd)
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, old)
