"""The verbs that read a trace, with the standard library only: for smoke.py."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

from stretto.cli.main import main

FORMATS = ("json", "txt", "fxt", "chrome.json", "jsonl", "speedscope.json", "collapsed", "pstats")
"""Those that need no other package, and in which names are plain text."""


def run(*arguments: str) -> str:
    """Run a verb in this process; return its standard output, after its exit code was checked."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        code = main(arguments)
    if code:
        raise AssertionError(f"stretto {arguments[0]} ended with {code}: {errors.getvalue()}")
    return output.getvalue()


def check_reading(trace: Path, called: str, folder: Path) -> None:
    """Check that the verbs find a function in a trace.

    Args:
        trace: The trace.
        called: The name of a function that was called once.
        folder: Where converted traces are written.
    """
    statement = f"select name, dur > 0 as ended from slice where name = '{called}'"
    query = ("query", str(trace), "--engine", "sqlite", "--format", "json", statement)
    rows = json.loads(run(*query))
    assert rows == [{"name": called, "ended": 1}], rows
    assert called in run("summary", str(trace))
    run("diff", str(trace), str(trace))
    for suffix in FORMATS:
        file = folder / f"converted.{suffix}"
        run("convert", str(trace), str(file))
        assert called.encode() in file.read_bytes(), f"{file} has no {called}"
