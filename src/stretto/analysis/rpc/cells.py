"""Rows of a query as batches of cells, and back.

A batch has the kind of each cell, row by row, and the values by kind; each text ends with a NUL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto.protos.trace_processor import QueryResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Batch = QueryResult.CellsBatch

NULL, VARINT, FLOAT64, STRING, BLOB = 1, 2, 3, 4, 5
MAX_CELLS = 50_000
MAX_BYTES = 128 << 10
_MAX_INT = 1 << 63


class _Batch:
    """A batch that is being filled."""

    def __init__(self) -> None:
        self.cells: list[int] = []
        self.values: dict[int, list[Any]] = {VARINT: [], FLOAT64: [], STRING: [], BLOB: []}
        self.size = 0

    def add(self, value: Any) -> None:
        kind, value = _kind_and_value(value)
        self.cells.append(kind)
        self.size += len(value) if kind >= STRING else 8
        if kind != NULL:
            self.values[kind].append(value)

    @property
    def is_full(self) -> bool:
        return len(self.cells) >= MAX_CELLS or self.size >= MAX_BYTES

    def message(self, *, is_last: bool) -> Batch:
        texts = "".join(f"{text}\0" for text in self.values[STRING])
        return QueryResult.CellsBatch(
            cells=self.cells,
            varint_cells=self.values[VARINT],
            float64_cells=self.values[FLOAT64],
            blob_cells=self.values[BLOB],
            string_cells=texts,
            is_last_batch=is_last,
        )


def _kind_and_value(value: Any) -> tuple[int, Any]:
    if value is None:
        return NULL, None
    if isinstance(value, int) and -_MAX_INT <= value < _MAX_INT:
        return VARINT, int(value)
    if isinstance(value, bytes | bytearray):
        return BLOB, bytes(value)
    if isinstance(value, str):
        return STRING, value.replace("\0", "\ufffd")
    return FLOAT64, float(value)


def batches(rows: Iterable[Sequence[Any]]) -> Iterator[Batch]:
    """Make batches of rows; the last one is marked, and the only one may be empty."""
    batch = _Batch()
    for row in rows:
        if batch.is_full:
            yield batch.message(is_last=False)
            batch = _Batch()
        for value in row:
            batch.add(value)
    yield batch.message(is_last=True)


def rows_of(column_count: int, received: Iterable[Batch]) -> list[tuple[Any, ...]]:
    """Return the rows of batches.

    Raises:
        ValueError: The cells don't fill the rows, or values are missing.
    """
    cells = [value for batch in received for value in _values(batch)]
    if not column_count:
        return []
    columns = [iter(cells)] * column_count
    return list(zip(*columns, strict=True))


def _values(batch: Batch) -> Iterator[Any]:
    values: dict[int, Iterator[Any]] = {
        VARINT: iter(batch.varint_cells),
        FLOAT64: iter(batch.float64_cells),
        STRING: iter(batch.string_cells.split("\0")),
        BLOB: (bytes(blob) for blob in batch.blob_cells),
    }
    for kind in batch.cells:
        if kind == NULL:
            yield None
            continue
        try:
            yield next(values[kind])
        except (KeyError, StopIteration):
            raise ValueError(f"the result has no value for a cell of kind {kind}") from None
