"""`stretto record --my-code`: the program's own code, and the installed functions that it calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stretto.base.installed_code import NOT_OWN_CODE
from stretto.cli.main import main
from tests.support.recorded import Run, check_trace, record

PROGRAM = """
import importlib, json, sys
sys.path.append(sys.argv[1])
import foreign

def inner():
    return json.dumps([1], indent=1)

def outer():
    for _ in range(3):
        foreign.first(inner)

outer()
"""

FOREIGN = """
import time

def first(callback):
    second(callback)

def second(callback):
    time.sleep(0.02)  # sleep: long enough for several samples, the only means of CPython 3.11
    if callback:
        callback()
        first(None)  # neither this call nor its return ends the slice of the first one
"""


def record_with_samples(path: Path, *arguments: str) -> Run:
    """Record, and do it again while the trace says that a busy machine had no time for samples."""
    for _ in range(5):
        run = record(path, *arguments)
        if b"no stack samples" not in run.trace:
            break
    return run


@pytest.mark.parametrize("mode", ["--full", "--ring", "--auto"], ids=str)
def test_installed_code_is_recorded_only_where_own_code_calls_it(
    tmp_path: Path, oracle: Any, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "foreign.py").write_text(FOREIGN)
    script = tmp_path / "own.py"
    script.write_text(PROGRAM)
    arguments = (mode, "--my-code", str(script), str(packages))
    run = record_with_samples(tmp_path / "own.pftrace", *arguments)
    assert run.status == 0, run.stderr
    assert f"  left out: {NOT_OWN_CODE}\n" in run.stderr
    assert main(["summary", str(run.path)]) == 0
    assert f"  left out: {NOT_OWN_CODE}\n" in capsys.readouterr().out
    trace = check_trace(oracle, run.trace)
    names = trace.query(
        "select s.name, p.name from slice s left join slice p on s.parent_id = p.id "
        "where s.category = 'python.functions' and (s.name like 'foreign.%' or s.name = 'inner')"
    )
    assert names.count(("foreign.first", "outer")) == 3
    assert {name for name, _ in names} - {"inner"} == {"foreign.first"}
    assert [parent for name, parent in names if name == "foreign.first"] == ["outer"] * 3
    if mode != "--auto":
        assert names.count(("inner", "foreign.first")) == 3
        within = trace.query(
            "select count(*) from slice where name = 'json.encoder.JSONEncoder.encode'"
        )
        assert within == [(0,)]
