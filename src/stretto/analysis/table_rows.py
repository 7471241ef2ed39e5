"""The rows of an imported trace's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from stretto import _native


def rows_of(importer: _native.TraceImporter, table: str) -> Iterator[dict[str, Any]]:
    """Give the rows of a table, by column."""
    names, rows = importer.rows(table)
    return (dict(zip(names, row, strict=True)) for row in rows)
