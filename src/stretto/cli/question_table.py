"""The answers of `stretto query --ask` as tables: times have units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.questions import DURATIONS, INSTANTS
from stretto.cli.record.detail_lines import time_text
from stretto.cli.text_table import as_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.cli.text_table import Rows


def answer_table(columns: Sequence[str], rows: Rows) -> str:
    """Format the answer to a question.

    Durations are shown as `1.5 ms`, instants in seconds, other real numbers with four digits.
    """
    numbers = {
        name
        for i, name in enumerate(columns)
        if all(row[i] is None or isinstance(row[i], int | float) for row in rows)
    }
    shown = [tuple(map(_shown, columns, row)) for row in rows]
    return as_table(columns, shown, numbers)


def _shown(column: str, value: object) -> object:
    if not isinstance(value, int | float):
        return value
    if column in INSTANTS:
        return f"{value / 1e9:.6f} s"
    if column in DURATIONS:
        return time_text(value)
    if isinstance(value, int):
        return value
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
