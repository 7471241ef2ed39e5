"""The formats of exports by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.empty_trace import EmptyTraceError
from stretto.analysis.export import profiles
from stretto.analysis.export.events import chrome, json_lines
from stretto.analysis.export.lanes import read_lanes
from stretto.analysis.export.stacks import SAMPLES, Stacks, read_stacks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stretto import _native

    Importer = _native.TraceImporter

ENDINGS = {
    ".chrome.json": "chrome",
    ".jsonl": "jsonl",
    ".speedscope.json": "speedscope",
    ".speedscope": "speedscope",
    ".pprof": "pprof",
    ".pb.gz": "pprof",
    ".collapsed": "collapsed",
    ".folded": "collapsed",
    ".firefox.json": "firefox",
    ".pstats": "pstats",
    ".prof": "pstats",
}
"""The formats by the end of a file's name."""

FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
BINARY = ("pprof", "pstats")
SECONDS = (
    "the trace doesn't tell the time between its samples: a sample counts as a second in the "
    "statistics"
)
"""What `pstats` says of such samples: its files have seconds only."""


def format_of_export(name: str) -> str | None:
    """Return the format of a file's name; None if it is no export."""
    return next((made for end, made in ENDINGS.items() if name.lower().endswith(end)), None)


def export(
    importer: Importer, target: str, name: str, note: Callable[[str], object] | None = None
) -> Iterator[bytes]:
    """Give the parts of an export.

    Args:
        importer: The trace.
        target: The format, one of FORMATS.
        name: The name of the trace.
        note: Called with a text on what the result doesn't tell.

    Raises:
        EmptyTraceError: The format is a profile, and the trace has no slice and no sample.
    """
    if target in _EVENTS:
        return (text.encode(errors="replace") for text in _EVENTS[target](importer))
    stacks = read_stacks(importer, read_lanes(importer), prefers_time=target != "collapsed")
    if not stacks.stacks:
        raise EmptyTraceError
    if note and target == "pstats" and stacks.unit == SAMPLES:
        note(SECONDS)
    return iter([_PROFILES[target](stacks, name)])


_EVENTS: dict[str, Callable[[Importer], Iterator[str]]] = {"chrome": chrome, "jsonl": json_lines}
_PROFILES: dict[str, Callable[[Stacks, str], bytes]] = {
    "collapsed": lambda stacks, _: profiles.collapsed(stacks),
    "speedscope": profiles.speedscope,
    "pprof": lambda stacks, _: profiles.pprof(stacks),
    "pstats": lambda stacks, _: profiles.pstats(stacks),
    "firefox": profiles.firefox,
}
