"""`stretto record` reports programs that it can't record, and records all other programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.recorded import alone, names, pids, record, record_command


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace.pftrace"


def test_program_other_than_python_is_reported_as_not_followed(trace):
    run = record(trace, "--", "true")
    assert run.status == 0
    assert "not followed: the program: it is no Python, and started none" in run.stderr


def test_python_program_without_events_is_not_reported(trace):
    run = record(trace, "--no-functions", "--no-counters", "-c", "pass")
    assert "not followed" not in run.stderr


def test_program_under_two_recorders_is_recorded_by_the_inner_recorder(oracle, tmp_path, trace):
    inner = tmp_path / "inner.pftrace"
    text = "def of_the_program(): pass\nof_the_program()"
    run = record(trace, "--", *record_command(inner, "--ring", "-c", text))
    assert run.status == 0, run.stderr
    assert "not followed" not in run.stderr
    assert "of_the_program" in names(oracle(inner.read_bytes()))
    outer = oracle(run.trace)
    assert "of_the_program" not in names(outer)
    assert len(pids(outer)) == 1


def test_command_line_with_newlines_is_shown_on_one_line(trace):
    text = "import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', 'if 1:\\n  1\\n'])"
    said = record(trace, "-c", text).stderr
    assert [line.rsplit("(")[-1] for line in said.splitlines() if "not followed" in line] == [
        f"{os.path.basename(sys.executable)} -I -c if 1: 1)"
    ]


def test_error_names_the_limit_of_open_descriptors(trace):
    shell = f"ulimit -n 11; exec {' '.join(record_command(trace, '-c', '1'))}"
    run = alone("sh", "-c", shell)
    assert run.status == 125
    assert "ulimit -n" in run.stderr
    assert "Traceback" not in run.stderr
    assert not list(trace.parent.iterdir())


EXCEPTHOOKS = {
    "replaced": "sys.excepthook = lambda *_: None",
    "chained": "python_s = sys.excepthook\nsys.excepthook = lambda *error: python_s(*error)",
    "ignoring": "python_s = sys.excepthook\n"
    "class Broken:\n    def __del__(self): raise ValueError\n"
    "sys.excepthook = lambda *error: (python_s(*error), Broken(), None)[-1]",
    "caught": "sys.excepthook = lambda *_: None\ntry: fail()\nexcept KeyError: sys.exit(1)",
}


@pytest.mark.parametrize(
    ("hook", "found"), [("replaced", 1), ("chained", 1), ("ignoring", 2), ("caught", 0)]
)
def test_uncaught_exceptions_are_counted_despite_an_excepthook_of_the_program(
    oracle, trace, hook, found
):
    text = f"import sys\ndef fail(): raise KeyError('key')\n{EXCEPTHOOKS[hook]}\nfail()"
    run = record(trace, "-q", "-c", text)
    assert run.status == 1
    loaded = oracle(run.trace)
    query = "select count(*) from slice where category = 'python.exceptions'"
    assert loaded.query(query) == [(found,)]
