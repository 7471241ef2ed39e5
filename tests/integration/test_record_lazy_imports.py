"""`stretto record` records programs with the lazy imports of CPython 3.15.

A lazily imported module runs when the program first uses it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.recorded import alone, check_trace, names, record

pytestmark = pytest.mark.skipif(sys.version_info < (3, 15), reason="lazy imports are new in 3.15")

PROGRAM = """
lazy import first_used
lazy import broken
lazy from first_used import answer

def uses_it():
    return first_used.answer()

def fails():
    try:
        broken.name
    except ValueError as error:
        print(type(error.__cause__).__name__, error)

print(uses_it(), answer())
fails()
"""
OUTPUT = "42 42\nImportError broken body\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "first_used.py").write_text("def answer():\n    return 42\n")
    (tmp_path / "broken.py").write_text("raise ValueError('broken body')\n")
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    return script


@pytest.mark.parametrize("imports", ["normal", "all"])
def test_module_with_lazy_import_runs_inside_the_function_that_uses_it_first(
    oracle, tmp_path, program, imports
):
    assert alone(sys.executable, str(program)).stdout == OUTPUT
    run = record(tmp_path / "trace", "--full", "--", str(program), PYTHON_LAZY_IMPORTS=imports)
    assert (run.status, run.stdout) == (0, OUTPUT)
    loaded = check_trace(oracle, run.trace)
    assert {"uses_it", "first_used.answer", "fails"} <= names(loaded)
    inside = """
        select user.name from slice body
        join slice user on body.ts >= user.ts and body.ts + body.dur <= user.ts + user.dur
        where body.name in ('import first_used', 'import broken')
          and user.name in ('uses_it', 'first_used.answer', 'fails')
        order by body.ts
    """
    assert loaded.query(inside) == [("uses_it",), ("fails",)]


def test_stretto_records_when_all_imports_are_lazy(oracle, tmp_path):
    trace = tmp_path / "trace"
    code = f"""
import stretto

@stretto.traced
def work():
    with stretto.slice("inside"):
        stretto.counter("number", 1)

with stretto.recording({str(trace)!r}, functions=True):
    work()
"""
    run = alone(sys.executable, "-W", "error", "-X", "lazy_imports=all", "-c", code)
    assert (run.status, run.stderr) == (0, "")
    assert {"work", "inside"} <= names(check_trace(oracle, trace.read_bytes()))
