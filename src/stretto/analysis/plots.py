"""Pictures of a trace, by matplotlib: slices over time, counters, a flame graph, latencies."""

from __future__ import annotations

import zlib
from fnmatch import fnmatchcase
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from stretto.analysis.duration_plot import draw_histogram, unit_of
from stretto.analysis.export.lanes import read_lanes
from stretto.analysis.export.stacks import NANOSECONDS, read_stacks
from stretto.analysis.table_rows import rows_of
from stretto.base.errors import StrettoError
from stretto.base.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stretto import _native
    from stretto.analysis.export.lanes import Lane, Slice

    Importer = _native.TraceImporter

MISSING = "plots need {}: `pip install 'stretto[plot]'` installs it"
MAX_LANES = 24
MAX_COUNTERS = 12
_WIDTH = 16.0
_PIXELS = 2000
"""Slices that begin at the same pixel of a row are drawn once."""
_LETTERS = 11
"""Letters per inch."""
_TITLE = 80
"""The most letters of a title."""
_SHORTEST = 6
"""A name with fewer letters isn't cut."""
_LARGEST = 1e300
"""Ranges of larger values overflow in matplotlib."""
_HUGE = 1e100
"""What values beyond are divided by."""


class PlotError(StrettoError):
    """A trace has nothing to draw."""


def draw(importer: Importer, kind: str, title: str, pattern: str = "*") -> Any:
    """Return a `matplotlib.figure.Figure`.

    Args:
        importer: The trace.
        kind: One of KINDS.
        title: The title.
        pattern: The names of the slices or counters that are drawn, as a pattern of `fnmatch`.

    Raises:
        ModuleNotFoundError: matplotlib isn't installed.
        PlotError: There is nothing to draw.
    """
    try:
        made = import_module("matplotlib.figure").Figure(layout="constrained")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(MISSING.format(error.name), name=error.name) from error
    made.suptitle(_shortened(title, _TITLE), parse_math=False)
    KINDS[kind](made, importer, pattern)
    return made


def _colour(name: str) -> tuple[float, float, float]:
    """Return a light colour that depends on the name alone."""
    number = zlib.crc32(name.encode(errors="replace"))
    red, green, blue = (0.55 + (number >> shift & 0xFF) / 255 * 0.4 for shift in (0, 8, 16))
    return red, green, blue


def _matching(lanes: Iterable[Lane], pattern: str) -> list[tuple[Lane, list[Slice]]]:
    found = [(lane, [s for s in lane.slices if fnmatchcase(s.name, pattern)]) for lane in lanes]
    chosen = [(lane, slices) for lane, slices in found if slices]
    if not chosen:
        raise PlotError(f"there is no slice {pattern!r}" if pattern != "*" else "there is no slice")
    return chosen


def _box(axes: Any, place: tuple[float, float, float], name: str, whole: float) -> None:
    """Draw a box; `place` is its left edge, row and width."""
    left, row, width = place
    axes.broken_barh(
        [(left, width)], (row, 0.92), facecolors=_colour(name), edgecolor="white", linewidth=0.3
    )
    room, shown = int(width / whole * _WIDTH * _LETTERS), printable(name)
    if room >= min(len(shown), _SHORTEST):
        axes.text(
            left + width / 2, row + 0.46, shown[:room], ha="center", va="center", size=8,
            clip_on=True, parse_math=False,
        )  # fmt: skip


def _slices(figure: Any, importer: Importer, pattern: str) -> None:
    """Draw the slices of each lane over time; slices inside others are below them."""
    chosen = sorted(_matching(read_lanes(importer), pattern), key=lambda each: -len(each[1]))
    shown = chosen[:MAX_LANES]
    first = min(slices[0].start for _, slices in shown)
    whole = max(max(each.end for each in slices) for _, slices in shown) - first or 1
    scale, unit = unit_of(whole)
    axes, row = figure.subplots(), 0
    places, labels = [], []
    for lane, slices in shown:
        rows = max(each.depth for each in slices) + 1
        drawn = set()
        for each in slices:
            pixel = each.depth, (each.start - first) * _PIXELS // whole
            if pixel not in drawn:
                drawn.add(pixel)
                width = max(each.end - each.start, whole / _PIXELS)
                place = (each.start - first) / scale, row + each.depth, width / scale
                _box(axes, place, each.name, whole / scale)
        places.append(row + rows / 2)
        labels.append(_shortened(f"{lane.process} {lane.name}".strip()))
        row += rows
        axes.axhline(row, color="0.85", linewidth=0.5)
    axes.set(xlabel=f"time [{unit}]", ylim=(row, 0), xlim=(0, whole / scale))
    axes.set_yticks(places, labels)
    _literal(axes.get_yticklabels())
    figure.set_size_inches(_WIDTH, min(max(row * 0.22 + 1.5, 3), 40))
    if len(chosen) > len(shown):
        axes.set_title(f"the {len(shown)} lanes with the most slices, of {len(chosen)}", size=9)


def _shortened(text: str, most: int = 40) -> str:
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def _literal(texts: Iterable[Any]) -> None:
    """Show `$` as it is, not as the beginning of a formula."""
    for text in texts:
        text.set_parse_math(False)


class _Line(NamedTuple):
    """A counter: what its line is called, its unit, its values by time."""

    title: str
    unit: str
    values: list[tuple[int, float]]


def _owners(importer: Importer) -> Callable[[dict[str, Any]], str]:
    """Return a function that names the thread or process of a track."""
    processes = rows_of(importer, "process")
    names = {row["upid"]: row["name"] or f"process {row['pid']}" for row in processes}
    threads = {row["utid"]: row for row in rows_of(importer, "thread")}

    def owner(track: dict[str, Any]) -> str:
        if track["utid"] is None:
            return names.get(track["upid"], "")
        thread = threads[track["utid"]]
        name = thread["name"] or f"thread {thread['tid']}"
        return f"{names.get(thread['upid'], '')} {name}".strip()

    return owner


def _counter_lines(importer: Importer, pattern: str) -> list[_Line]:
    owner = _owners(importer)
    lines = {}
    for track in rows_of(importer, "__intrinsic_track"):
        name = track["name"] or "counter"
        if fnmatchcase(name, pattern):
            whose = owner(track)
            title = f"{name} of {whose}" if whose else name
            lines[track["id"]] = _Line(title, track["counter_unit"] or "", [])
    for row in rows_of(importer, "counter"):
        if row["track_id"] in lines:
            lines[row["track_id"]].values.append((row["ts"], row["value"]))
    return [line for line in lines.values() if line.values]


def _counters(figure: Any, importer: Importer, pattern: str) -> None:
    """Draw the values of each counter over time."""
    lines = _counter_lines(importer, pattern)
    if not lines:
        raise PlotError(f"there is no counter {pattern!r}")
    shown = sorted(lines, key=lambda line: -len(line.values))[:MAX_COUNTERS]
    first = min(line.values[0][0] for line in shown)
    scale, unit = unit_of(max(line.values[-1][0] for line in shown) - first)
    every = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for axes, line in zip(every, shown, strict=True):
        size, value_unit = _value_unit(line)
        times = [(time - first) / scale for time, _ in line.values]
        values = [value / size for _, value in line.values]
        axes.step(times, values, where="post", linewidth=1)
        axes.fill_between(times, values, step="post", alpha=0.2)
        _literal([axes.set_ylabel(_shortened(value_unit))])
        _literal([axes.set_title(_shortened(line.title), loc="left", size=9)])
    every[-1].set_xlabel(f"time [{unit}]")
    if len(lines) > len(shown):
        text = f"the {len(shown)} counters with the most values, of {len(lines)}"
        every[0].set_title(text, loc="right", size=9)
    figure.set_size_inches(_WIDTH, 1.6 * len(shown) + 1)


def _value_unit(line: _Line) -> tuple[float, str]:
    """Return what the values are divided by, and their unit then."""
    if line.unit == "ns":
        return unit_of(max(value for _, value in line.values))
    if any(_LARGEST < abs(value) < inf for _, value in line.values):
        return _HUGE, f"{_HUGE:g} {line.unit}".rstrip()
    return 1.0, line.unit


class _Node:
    """A frame of the flame graph, with its time and the frames inside."""

    def __init__(self) -> None:
        self.value = 0
        self.inside: dict[str, _Node] = {}

    def add(self, names: tuple[str, ...], value: int) -> None:
        node = self
        node.value += value
        for name in names:
            node = node.inside.setdefault(name, _Node())
            node.value += value

    def boxes(self, left: int = 0, depth: int = 0) -> Iterator[tuple[str, int, int, int]]:
        """Give name, left edge, depth and width of each frame."""
        for name, node in sorted(self.inside.items(), key=lambda each: -each[1].value):
            yield name, left, depth, node.value
            yield from node.boxes(left, depth + 1)
            left += node.value


def _flame(figure: Any, importer: Importer, pattern: str) -> None:
    """Draw the stacks by their time; the outermost frames are at the bottom."""
    found = read_stacks(importer, read_lanes(importer))
    root = _Node()
    for stack in found.stacks:
        matching = [at for at, name in enumerate(stack.names) if fnmatchcase(name, pattern)]
        if matching:
            source = (stack.source,) if stack.source else ()
            root.add((*source, *stack.names[matching[0] :]), stack.value)
    if not root.value:
        raise PlotError(f"there is no slice {pattern!r} with a duration")
    scale, unit = unit_of(root.value) if found.unit == NANOSECONDS else (1.0, "samples")
    axes, depth = figure.subplots(), 0
    for name, left, row, width in root.boxes():
        if width * _PIXELS >= root.value:
            depth = max(depth, row + 1)
            _box(axes, (left / scale, row, width / scale), name, root.value / scale)
    axes.set(xlabel=f"time [{unit}]" if found.unit == NANOSECONDS else unit, yticks=[],
             xlim=(0, root.value / scale), ylim=(0, depth))  # fmt: skip
    figure.set_size_inches(_WIDTH, min(max(depth * 0.25 + 1.5, 3), 40))


def _latency(figure: Any, importer: Importer, pattern: str) -> None:
    """Draw a histogram of the durations, with their percentiles."""
    chosen = _matching(read_lanes(importer), pattern)
    durations = sorted(s.end - s.start for _, slices in chosen for s in slices if s.end > s.start)
    if not durations:
        raise PlotError(f"there is no slice {pattern!r} with a duration")
    draw_histogram(figure.subplots(), durations)
    figure.set_size_inches(10, 5)


KINDS: dict[str, Callable[[Any, Importer, str], None]] = {
    "slices": _slices,
    "counters": _counters,
    "flame": _flame,
    "latency": _latency,
}
"""The kinds of pictures."""
