"""Perfetto's trace processor shows the arguments and the result of a call with its slice."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.recorded import check_trace, record

PROGRAM = """
class Cart:
    def __repr__(self): raise SystemExit
def sell(item, cart, password): return [item, len(password)]
sell("book", Cart(), "hunter2")
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs CPython 3.12")
def test_slice_of_a_call_has_its_arguments_and_its_result(tmp_path: Path, oracle: Any) -> None:
    script = tmp_path / "shop.py"
    script.write_text(PROGRAM)
    run = record(tmp_path / "trace", "--log-args", "--log-result", str(script))
    assert run.status == 0, run.stderr
    (private,) = [line for line in run.stderr.splitlines() if "private: " in line]
    assert "the trace holds command lines (--no-args), " in private
    assert "arguments or results of calls" in private
    sql = "select key, display_value from slice join args using (arg_set_id) where name = 'sell'"
    found = dict(check_trace(oracle, run.trace).query(sql))
    assert {key: value for key, value in found.items() if key.startswith("debug.")} == {
        "debug.item": "book",
        "debug.cart": "<Cart>",
        "debug.password": "<left out>",
        "debug.result": "['book', 7]",
    }
    assert b"hunter2" not in run.trace
