"""Tables of text for a terminal, with aligned columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto.base.printable import printable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    Rows = list[tuple[Any, ...]]

_MAX_WIDTH = 60


def aligned(lines: Sequence[Sequence[str]], right: Sequence[bool] = ()) -> str:
    """Format lines of cells with columns of equal width.

    Args:
        lines: The cells of each line; all lines have as many.
        right: For each column, whether it is aligned to the right; empty for none.
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = right or [False] * len(widths)
    return "".join(
        "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, sides, strict=True)
        ).rstrip()
        + "\n"
        for line in lines
    )


def as_table(columns: Sequence[str], rows: Rows, right: Collection[str] = ()) -> str:
    """Format rows below a header; numbers and columns in `right` are aligned to the right."""
    cells = [[_text(value) for value in row] for row in rows]
    sides = [
        name in right
        or (bool(rows) and all(row[i] is None or isinstance(row[i], int | float) for row in rows))
        for i, name in enumerate(columns)
    ]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    return aligned([columns, ["-" * width for width in widths], *cells], sides)


def _text(value: object) -> str:
    """Format a value on one line."""
    text = "[NULL]" if value is None else printable(str(value))
    return text if len(text) <= _MAX_WIDTH else text[: _MAX_WIDTH - 1] + "…"
