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
    """Format the answer to a question; durations are shown as `1.5 ms`, instants in seconds."""
    shown = [
        tuple(_with_unit(name, value) for name, value in zip(columns, row, strict=True))
        for row in rows
    ]
    return as_table(columns, shown, {*DURATIONS, *INSTANTS})


def _with_unit(column: str, value: object) -> object:
    if not isinstance(value, int | float):
        return value
    if column in INSTANTS:
        return f"{value / 1e9:.6f} s"
    return time_text(value) if column in DURATIONS else value
