"""SQL has the values of Perfetto's trace processor, or an error that names what is missing."""

from __future__ import annotations

from contextlib import closing

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")
pytest.importorskip("google.protobuf")
pytest.importorskip("perfetto")

from stretto.analysis.trace_processor import DUCKDB
from tests.conformance.queries_corpus import make_trace
from tests.conformance.sql_dialect import FOLDER, Sides, statements
from tests.support import oracle

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(oracle.missing() is not None, reason=str(oracle.missing())),
]


def documented() -> set[str]:
    """Return the statements that differ, each for a reason that docs/analysis.md has."""
    lines = (FOLDER / "differences.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def one_line(sql: str) -> str:
    return " ".join(sql.split())


@pytest.mark.thorough
def test_no_statement_differs_silently() -> None:
    with closing(Sides(make_trace(), DUCKDB)) as sides:
        outcomes = [(one_line(sql), sides.compare(sql)) for sql in statements()]
    different = {sql for sql, outcome in outcomes if outcome.result == "different"}
    assert sorted(different ^ documented()) == []
    assert sum(outcome.result == "same" for _, outcome in outcomes) >= 1390
