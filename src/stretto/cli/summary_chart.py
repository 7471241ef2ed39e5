"""A chart of the page of `stretto summary --html`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Bar(NamedTuple):
    """A row of a chart: a bar, and a wider one behind it.

    Attributes:
        name: What it is of.
        detail: More about it.
        main: The value of the bar.
        wide: The value of the bar behind it.
        main_text: The value of the bar as text.
        wide_text: The value of the bar behind it as text.
    """

    name: str
    detail: str
    main: float
    wide: float
    main_text: str
    wide_text: str


class Chart(NamedTuple):
    """A chart.

    Attributes:
        title: The heading.
        legend: What the two bars of a row are.
        bars: The rows, of which the first ones are shown.
        below: A line below the rows.
    """

    title: str
    legend: str
    bars: Sequence[Bar]
    below: str = ""


def with_rest(charts: list[Chart], rest: str) -> list[Chart]:
    """Return charts that say below the last one how many are left out."""
    last = [chart._replace(below=f"{chart.below} {rest}".strip()) for chart in charts[-1:]]
    return [*charts[:-1], *last]
