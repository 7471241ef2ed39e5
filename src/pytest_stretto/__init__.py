"""`pytest --stretto[=FILE]`: a lane of the trace has a slice per test; docs/pytest.md describes it.

pytest imports this module in each of its runs. The package is separate from `stretto`, so that
`stretto` is imported only in runs that are recorded.
"""

from __future__ import annotations

import os
import sys

import pytest

TRACE = "trace.pftrace"


def _trace_path(text: str) -> str:
    """Parse FILE.

    `--stretto test_shop.py` names a file of tests by mistake. This file must not be overwritten.

    Raises:
        UsageError: FILE is a folder, a source, the id of a test, or a file that isn't a trace.
    """
    if "::" not in text and not os.path.isdir(text) and _may_be_overwritten(text):
        return text
    raise pytest.UsageError(
        f"--stretto {text}: this isn't a trace. Name a trace as in `--stretto={TRACE}`, or "
        "give the tests before `--stretto`."
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
        "--stretto",
        nargs="?",
        const=TRACE,
        type=_trace_path,
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
        from pytest_stretto.run import RecordedRun

        config.pluginmanager.register(RecordedRun(None if recorded else path), "stretto-run")
    if recorded and worker:
        from stretto.client.track_event import process_name, source

        process_name.given[:] = [f"pytest {worker}"]
        source.name_worker()
    if recorded or (path is not None and not worker):
        from pytest_stretto.lane import Lane

        config.pluginmanager.register(Lane(f"tests {worker}".rstrip()), "stretto-lane")
