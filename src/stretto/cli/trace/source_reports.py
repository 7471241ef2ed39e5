"""What data sources tell in a trace about themselves: why one records nothing, or less.

    FtraceStats   the reasons for a failed set-up; events that are unknown or were refused
    notes         texts of other data sources (base/notes_tracks.py)

Each becomes a sentence for the terminal. They stand in the trace once per flush, so equal ones
count once.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

from stretto import _native
from stretto.base.notes_tracks import NOTES, notes_track
from stretto.base.printable import printable
from stretto.protos.trace import FtraceStats, TrackEvent
from stretto.recorder.host.packet_file import PacketFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FTRACE = "linux.ftrace"
MAX_LINES = 20
MAX_REPORTS = 1000
"""Further reports are not counted."""


class SourceReports(PacketFile):
    """Collects the reports in the packets of a trace.

    Args:
        sources: the names of the session's data sources.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        super().__init__()
        self._sources = {notes_track(name): name for name in sources}
        self._lines: dict[str, None] = {}

    def add(self, data: bytes | bytearray | memoryview, *, inflate: bool = True) -> int:
        """Collect the reports of the complete packets at the start of `data`; return their size."""
        parsed, compressed, ftrace, notes = _native.source_reports(data, NOTES)
        for packets in compressed if inflate else ():
            with suppress(zlib.error):  # Whoever reads the trace is told of damage.
                self.add(zlib.decompress(packets), inflate=False)
        for stats in ftrace:
            for text in _ftrace_reports(FtraceStats.Decoder(stats)):
                self._add(FTRACE, text)
        for note in notes:
            event = TrackEvent.Decoder(note)
            self._add(self._sources.get(event.track_uuid), event.name)
        return parsed

    def _add(self, source: str | None, text: str) -> None:
        if source and len(self._lines) < MAX_REPORTS:
            self._lines[printable(f"{source}: {text}")] = None

    def lines(self) -> list[str]:
        """Return a sentence for each report, at most MAX_LINES and one that counts the others."""
        lines = list(self._lines)
        if len(lines) > MAX_LINES:
            more = len(lines) - MAX_LINES
            lines[MAX_LINES:] = [f"the trace has {more} more reports of its data sources"]
        return lines


def _ftrace_reports(stats: FtraceStats.Decoder) -> Iterator[str]:
    yield from filter(None, stats.exclusive_feature_error.split("; "))
    for name in stats.unknown_ftrace_events:
        yield f"this kernel has no event {name!r}"
    for name in stats.failed_ftrace_events:
        yield f"the event {name!r} could not be enabled"
    yield from filter(None, stats.atrace_errors.splitlines())
