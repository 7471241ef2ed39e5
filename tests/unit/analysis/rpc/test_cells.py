"""Rows become batches of cells, and batches become rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.analysis.rpc.cells import MAX_CELLS, batches, rows_of
from stretto.protos.trace_processor import QueryResult

CELLS = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    st.binary(),
)


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.tuples(*[CELLS] * n)).map(lambda r: (n, r))))
def test_rows_come_back(table: tuple[int, list[tuple[object, ...]]]) -> None:
    columns, rows = table
    encoded = [batch.encode() for batch in batches(rows)]
    assert rows_of(columns, map(QueryResult.CellsBatch.decode, encoded)) == rows


def test_large_results_are_cut_between_rows_and_the_last_batch_is_marked() -> None:
    made = list(batches([(1, 2, 3)] * MAX_CELLS))
    assert [batch.is_last_batch for batch in made] == [False] * (len(made) - 1) + [True]
    assert all(len(batch.cells) % 3 == 0 for batch in made)
    assert sum(len(batch.cells) for batch in made) == 3 * MAX_CELLS


def test_result_without_rows_is_one_last_batch() -> None:
    (batch,) = batches([])
    assert batch.is_last_batch
    assert not batch.cells


def test_integers_above_64_bits_become_real_numbers() -> None:
    (batch,) = batches([(2**63, True)])
    assert rows_of(2, [batch]) == [(float(2**63), 1)]


def test_missing_values_are_refused() -> None:
    with pytest.raises(ValueError, match="no value for a cell of kind 2"):
        rows_of(1, [QueryResult.CellsBatch(cells=[2])])
