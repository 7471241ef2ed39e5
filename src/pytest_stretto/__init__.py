"""`pytest --stretto[=FILE]`: a lane of the trace has a slice per test; docs/pytest.md describes it.

pytest imports this module in each of its runs. The package is separate from `stretto`, so that
`stretto` is imported only in runs that are recorded.
"""

from __future__ import annotations

import os
import sys
from copy import copy
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

OPTION = "--stretto"
ENDING = ".pftrace"
TRACE = f"trace{ENDING}"


def _with_values(words: Sequence[str]) -> list[str]:
    """Return a command line in which each `--stretto` has its value, after `=`.

    argparse takes any word after an option as its value, the tests of `--stretto test_shop.py`,
    too. Here only the name of a trace is the value.
    """
    options = list(words)
    end = options.index("--") if "--" in options else len(options)
    for index in (each for each in reversed(range(end)) if options[each] == OPTION):
        named = index + 1 < end and options[index + 1].endswith(ENDING)
        path = options.pop(index + 1) if named else TRACE
        options[index] = f"{OPTION}={path}"
    return options


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Parse the command line again if a word after `--stretto` isn't its value."""
    args[:] = _with_values(args)
    known = early_config.known_args_namespace
    if known.stretto is not None:
        parsed = parser.parse_known_args(args, namespace=copy(early_config.option))
        known.stretto, known.file_or_dir = parsed.stretto, parsed.file_or_dir


def _check(path: str) -> None:
    """Raise UsageError if FILE is a folder, a source, the id of a test, or no trace."""
    if "::" in path or os.path.isdir(path) or not _may_be_overwritten(path):
        raise pytest.UsageError(
            f"{OPTION}={path}: this isn't a trace, and stays as it is. Name a trace as in "
            f"`{OPTION}={TRACE}`."
        )


def _may_be_overwritten(path: str) -> bool:
    if path.endswith((".py", ".txt", ".rst", ".md")):
        return False
    if not os.path.isfile(path) or not os.path.getsize(path):
        return True
    with open(path, "rb") as file:
        return file.read(1) == b"\n"  # A trace begins with the tag of a packet, 0x0a.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--stretto`."""
    parser.getgroup("stretto").addoption(
        OPTION,
        nargs="?",
        const=TRACE,
        metavar="FILE",
        help=f"record the tests in a Perfetto trace; as `--stretto=FILE` (default: {TRACE})",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Record the tests if `--stretto` is given, or if this process is recorded already."""
    bootstrap = sys.modules.get("stretto.recorder.target.bootstrap")
    recorded = bootstrap is not None and bootstrap.is_connected()
    path = config.getoption("stretto")
    worker = getattr(config, "workerinput", {}).get("workerid", "")  # of pytest-xdist
    if path is not None and not worker:
        _check(path)
        from pytest_stretto.run import RecordedRun

        config.pluginmanager.register(RecordedRun(None if recorded else path), "stretto-run")
    if recorded and worker:
        from stretto.client.track_event import process_name, source

        process_name.given[:] = [f"pytest {worker}"]
        source.name_worker()
    if recorded or (path is not None and not worker):
        from pytest_stretto.lane import Lane

        config.pluginmanager.register(Lane(f"tests {worker}".rstrip()), "stretto-lane")
