"""A histogram of durations by matplotlib, with their percentiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_BINS = 60
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_FINE = 1000
"""Below this ratio of the axis' ends, its labels are at 1, 2 and 5; above, at powers of ten."""
_PERCENTILES = ((50, "0.2"), (90, "#d29922"), (99, "#cf222e"))
"""The percentiles, and the colours of their lines."""


def unit_of(nanoseconds: float) -> tuple[float, str]:
    """Return the unit in which a time is shown: its size in ns, and its name."""
    return next((each for each in _UNITS if nanoseconds >= each[0]), _UNITS[-1])


def draw_histogram(axes: Any, durations: list[int]) -> None:
    """Draw durations.

    Args:
        axes: The `matplotlib.axes.Axes`.
        durations: The durations in ns, sorted; at least one.
    """
    low, high = durations[0], max(durations[-1], durations[0] + 1)
    logarithmic = high >= 10 * low  # Below, the labels of a logarithmic axis are hard to read.
    scale, unit = (1.0, "") if logarithmic else unit_of(durations[len(durations) // 2])
    edges = _edges(low / scale, high / scale, logarithmic=logarithmic)
    axes.hist([each / scale for each in durations], bins=edges, color="#1f6feb", alpha=0.8)
    for percent, colour in _PERCENTILES:
        value = _percentile(durations, percent)
        label = f"p{percent}: {_text(value)}"
        axes.axvline(value / scale, color=colour, linestyle="--", label=label)
    axes.set(xlabel=f"duration [{unit}]" if unit else "duration", ylabel="slices")
    if logarithmic:
        _label_powers(axes, low, high)
    else:
        axes.ticklabel_format(axis="x", style="plain", useOffset=False)
    axes.yaxis.get_major_locator().set_params(integer=True)
    _add_legend(axes, len(durations))


def _label_powers(axes: Any, low: int, high: int) -> None:
    """Label a logarithmic axis by times with units: `10 µs`, `1 ms`."""
    axes.set_xscale("log")
    axes.set_xticks(*zip(*((tick, _text(tick)) for tick in _ticks(low, high)), strict=True))
    axes.xaxis.set_minor_formatter("")  # The labels between would overlap these.


def _ticks(low: int, high: int) -> Iterator[int]:
    factors = (1, 2, 5) if high < _FINE * low else (1,)
    power = 10 ** (len(str(low)) - 1)
    while power <= high:
        yield from (power * factor for factor in factors if low <= power * factor <= high)
        power *= 10


def _add_legend(axes: Any, number: int) -> None:
    """Add the number and the percentiles above the picture, where they hide no bar."""
    axes.set_title(f"{number:,} slice{'s' * (number != 1)}", loc="left", size=10)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)


def _text(nanoseconds: float) -> str:
    scale, unit = unit_of(nanoseconds)
    value = nanoseconds / scale
    return f"{value:.4g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


def _percentile(values: list[int], percent: int) -> float:
    """Return a percentile of sorted values, as the SQL function `percentile` does."""
    rank, rest = divmod((len(values) - 1) * percent, 100)
    above = values[min(rank + 1, len(values) - 1)]
    return values[rank] + (above - values[rank]) * rest / 100


def _edges(low: float, high: float, *, logarithmic: bool) -> list[float]:
    """Return the edges of the bins; the last one is `high` itself, so that no value is lost."""
    steps = [step / _BINS for step in range(_BINS)]
    if logarithmic:
        return [*(low * (high / low) ** step for step in steps), high]
    return [*(low + (high - low) * step for step in steps), high]
