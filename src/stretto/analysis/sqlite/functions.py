"""PerfettoSQL's functions beyond SQLite's own."""

from __future__ import annotations

import base64
import json
import math
import re
from bisect import bisect_right
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from stretto.analysis.sql.errors import NO_DELIMITER, NO_FIELD, QueryError
from stretto.analysis.sqlite.percentile import Percentile

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    from stretto import _native

_REALTIME, _MONOTONIC = 1, 3
_NS = 10**9


class TraceFunctions:
    """The functions that read the trace.

    Args:
        importer: The tables.
        bounds: Returns the first and the last time of the trace.
    """

    def __init__(
        self, importer: _native.TraceImporter, bounds: Callable[[], tuple[int, int]]
    ) -> None:
        self._importer = importer
        self._bounds_of = bounds

    def add_to(self, connection: sqlite3.Connection) -> None:
        """Make the functions known to SQLite."""
        functions: dict[str, tuple[int, Callable[..., Any]]] = {
            "trace_start": (0, lambda: self._bounds[0]),
            "trace_end": (0, lambda: self._bounds[1]),
            "trace_dur": (0, lambda: self._bounds[1] - self._bounds[0]),
            "extract_arg": (2, lambda arg_set, key: self._args.get((arg_set, key))),
            "slice_is_ancestor": (2, self._is_ancestor),
            "to_realtime": (1, lambda time: self._converted(time, _REALTIME)),
            "to_monotonic": (1, lambda time: self._converted(time, _MONOTONIC)),
            "abs_time_str": (1, self._abs_time_str),
            "_ancestor_slice": (1, lambda start: _listed(self._ancestors(start))),
            "_descendant_slice": (1, lambda start: _listed(_reached(start, self._children)[1:])),
            "_following_flow": (1, self._following),
            "_preceding_flow": (1, self._preceding),
            "_directly_connected_flow": (1, self._connected),
        }
        for name, (count, function) in functions.items():
            connection.create_function(name, count, function, deterministic=True)

    @cached_property
    def _bounds(self) -> tuple[int, int]:
        return self._bounds_of()

    def _columns(self, table: str, *wanted: str) -> Iterable[tuple[Any, ...]]:
        names, rows = self._importer.rows(table)
        places = [names.index(name) for name in wanted]
        return (tuple(row[place] for place in places) for row in rows)

    @cached_property
    def _args(self) -> dict[tuple[int, str], Any]:
        wanted = ("arg_set_id", "key", "int_value", "string_value", "real_value")
        return _values(self._columns("__intrinsic_args", *wanted))

    def add_args(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows of `__intrinsic_args`, with all columns."""
        self._args.update(_values((row[1], *row[3:7]) for row in rows))

    @cached_property
    def _parents(self) -> dict[int, int]:
        return {
            child: parent
            for child, parent in self._columns("slice", "id", "parent_id")
            if parent is not None
        }

    @cached_property
    def _spans(self) -> dict[int, tuple[int, int, int]]:
        """The track, begin and duration of each slice."""
        rows = self._columns("slice", "id", "track_id", "ts", "dur")
        return {row[0]: (row[1], row[2], row[3]) for row in rows}

    def _is_ancestor(self, upper: Any, inner: Any) -> int | None:
        """Return whether a slice contains another one, as far as their times say."""
        if upper not in self._spans or inner not in self._spans:
            return None
        track, start, dur = self._spans[upper]
        inner_track, inner_start, inner_dur = self._spans[inner]
        is_longer = inner_dur != -1 and start + dur >= inner_start + inner_dur
        return int(track == inner_track and start <= inner_start and (dur == -1 or is_longer))

    @cached_property
    def _children(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for child, parent in self._parents.items():
            found.setdefault(parent, []).append(child)
        return found

    def _ancestors(self, start: Any) -> list[int]:
        found = []
        while (start := self._parents.get(start)) is not None:
            found.append(start)
        return found

    @cached_property
    def _ends(self) -> list[tuple[int, int, int]]:
        return list(self._columns("flow", "id", "slice_out", "slice_in"))

    @cached_property
    def _forward(self) -> dict[int, list[int]]:
        found = {parent: list(children) for parent, children in self._children.items()}
        for _, out, into in self._ends:
            found.setdefault(out, []).append(into)
        return found

    @cached_property
    def _backward(self) -> dict[int, list[int]]:
        found = {child: [parent] for child, parent in self._parents.items()}
        for _, out, into in self._ends:
            found.setdefault(into, []).append(out)
        return found

    @cached_property
    def _leaving(self) -> dict[int, list[tuple[int, int]]]:
        """The flows that begin in each slice, with the slice at the other end."""
        found: dict[int, list[tuple[int, int]]] = {}
        for flow, out, into in self._ends:
            found.setdefault(out, []).append((flow, into))
        return found

    @cached_property
    def _arriving(self) -> dict[int, list[tuple[int, int]]]:
        """The flows that end in each slice, with the slice at the other end."""
        found: dict[int, list[tuple[int, int]]] = {}
        for flow, out, into in self._ends:
            found.setdefault(into, []).append((flow, out))
        return found

    def _following(self, start: Any) -> str:
        slices = sorted(_reached(start, self._forward))
        return _listed(flow for each in slices for flow, _ in self._leaving.get(each, ()))

    def _preceding(self, start: Any) -> str:
        slices = sorted(_reached(start, self._backward), reverse=True)
        return _listed(flow for each in slices for flow, _ in self._arriving.get(each, ()))

    def _connected(self, start: Any) -> str:
        found = _followed(start, self._leaving) | _followed(start, self._arriving)
        return _listed(sorted(found))

    @cached_property
    def _clocks(self) -> dict[int, tuple[list[int], list[int]]]:
        found: dict[int, tuple[list[int], list[int]]] = {}
        for time, clock, value in self._columns("clock_snapshot", "ts", "clock_id", "clock_value"):
            times, offsets = found.setdefault(clock, ([], []))
            times.append(time)
            offsets.append(value - time)
        return found

    def _converted(self, time: Any, clock: int) -> int | None:
        if time is None or clock not in self._clocks:
            return None
        times, offsets = self._clocks[clock]
        return int(time) + offsets[max(bisect_right(times, time) - 1, 0)]

    def _abs_time_str(self, time: Any) -> str | None:
        real = self._converted(time, _REALTIME)
        if real is None:
            return None
        seconds, ns = divmod(real, _NS)
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ns:09}"


def _values(args: Iterable[tuple[Any, ...]]) -> dict[tuple[int, str], Any]:
    """Return the values of arguments by their set and key."""
    return {
        (arg_set, key): next((value for value in values if value is not None), None)
        for arg_set, key, *values in args
    }


def _listed(ids: Iterable[int]) -> str:
    return json.dumps(list(ids))


def _reached(start: Any, links: dict[int, list[int]]) -> list[int]:
    """Return the start and all that is reached from it."""
    found = [start]
    seen = {start}
    for each in found:
        for other in links.get(each, ()):
            if other not in seen:
                seen.add(other)
                found.append(other)
    return found


def _followed(start: Any, flows: dict[int, list[tuple[int, int]]]) -> set[int]:
    """Return the flows on all ways from the start."""
    slices, seen, found = [start], {start}, set()
    for each in slices:
        for flow, other in flows.get(each, ()):
            found.add(flow)
            if other not in seen:
                seen.add(other)
                slices.append(other)
    return found


def _regexp(pattern: str | None, text: object) -> int | None:
    return None if pattern is None or text is None else int(bool(re.search(pattern, str(text))))


def _regexp_extract(text: object, pattern: str | None) -> str | None:
    found = None if pattern is None or text is None else re.search(pattern, str(text))
    if found is None:
        return None
    return found[1] if found.re.groups and found[1] else found[0]


def _str_split(text: str | None, separator: Any, number: Any) -> str | None:
    if not isinstance(separator, str) or not separator:
        raise QueryError(NO_DELIMITER)
    if not isinstance(number, int) or number < 0:
        raise QueryError(NO_FIELD)
    parts = [] if text is None else text.split(separator)
    return parts[number] if number < len(parts) else None


def _unhex(text: str | None) -> bytes | None:
    try:
        return None if text is None else bytes.fromhex(text)
    except ValueError:
        return None


def _base64_encode(value: str | bytes | None) -> str | None:
    data = value.encode() if isinstance(value, str) else value
    return None if data is None else base64.b64encode(data).decode()


def _base64_decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _reverse(text: object) -> str | None:
    return None if text is None else str(text)[::-1]


def _greatest(*values: Any) -> Any:
    return max((value for value in values if value is not None), default=None)


class ValueAtMaxTs:
    """`value_at_max_ts(ts, value)`: the value at the largest time."""

    def __init__(self) -> None:
        self._time: int | None = None
        self._value: Any = None

    def step(self, time: int | None, value: Any) -> None:
        """Add a value."""
        if time is not None and (self._time is None or time > self._time):
            self._time, self._value = time, value

    def finalize(self) -> Any:
        """Return the value."""
        return self._value


def add_functions(connection: sqlite3.Connection, failed: Callable[[str], object]) -> None:
    """Make the functions that need no trace known to SQLite.

    Args:
        connection: The connection.
        failed: Called with what is wrong if a function fails: SQLite drops the text of errors.
    """
    functions: list[tuple[str, int, Callable[..., Any]]] = [
        ("regexp", 2, _regexp),
        ("regexp_extract", 2, _regexp_extract),
        ("str_split", 3, _str_split),
        ("reverse", 1, _reverse),
        ("unhex", 1, _unhex),
        ("base64_encode", 1, _base64_encode),
        ("base64_decode", 1, _base64_decode),
        ("greatest", -1, _greatest),
        *((name, 1, _of_number(getattr(math, at))) for name, at in _MATH.items()),
    ]
    for name, count, function in functions:
        told = _telling(name, function, failed)
        connection.create_function(name, count, told, deterministic=True)
    for name, count, aggregate in (
        ("percentile", 2, partial(Percentile, "percentile", failed)),
        ("median", 1, partial(Percentile, "median", failed)),
        ("value_at_max_ts", 2, ValueAtMaxTs),
    ):
        connection.create_aggregate(name, count, aggregate)  # type: ignore[arg-type]


def _telling(
    name: str, function: Callable[..., Any], failed: Callable[[str], object]
) -> Callable[..., Any]:
    """Return a function that tells why it fails."""

    def call(*values: Any) -> Any:
        try:
            return function(*values)
        except QueryError as error:
            failed(str(error))
            raise
        except Exception as error:
            failed(f"{name} can't take these arguments: {error}")
            raise

    return call


_MATH = {"ln": "log", "exp": "exp", "sqrt": "sqrt"}


def _of_number(function: Callable[[float], float]) -> Callable[[Any], float | None]:
    def call(value: Any) -> float | None:
        try:
            return None if value is None else function(float(value))
        except ValueError:
            return None

    return call
