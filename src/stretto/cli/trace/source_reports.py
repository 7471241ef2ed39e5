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
from stretto.protos.trace import FtraceStats, TrackDescriptor, TrackEvent
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
        sources: the names of the session's data sources; None if they aren't known, as in a copy of
            another's session. Then the trace names them.
    """

    def __init__(self, sources: Iterable[str] | None = None) -> None:
        super().__init__()
        self._learns = sources is None
        self._sources = {notes_track(name): name for name in (*(sources or ()), FTRACE)}
        self._reports: dict[tuple[int, str], None] = {}

    def add(self, data: bytes | bytearray | memoryview, *, inflate: bool = True) -> int:
        """Collect the reports of the complete packets at the start of `data`; return their size."""
        parsed, compressed, ftrace, notes, tracks = _native.source_reports(data, NOTES)
        for packets in compressed if inflate else ():
            with suppress(zlib.error):  # Whoever reads the trace is told of damage.
                self.add(zlib.decompress(packets), inflate=False)
        for stats in ftrace:
            for text in _ftrace_reports(FtraceStats.Decoder(stats)):
                self._add(notes_track(FTRACE), text)
        for note in notes:
            event = TrackEvent.Decoder(note)
            self._add(event.track_uuid, event.name)
        for track in tracks if self._learns else ():
            self._learn(TrackDescriptor.Decoder(track).name)
        return parsed

    def _add(self, track: int, text: str) -> None:
        if (self._learns or track in self._sources) and len(self._reports) < MAX_REPORTS:
            self._reports[track, text] = None

    def _learn(self, name: str) -> None:
        with suppress(UnicodeEncodeError):  # A name that isn't UTF-8 is no source's.
            if len(self._sources) < MAX_REPORTS:
                self._sources[notes_track(name)] = name

    def lines(self) -> list[str]:
        """Return a sentence for each report, at most MAX_LINES and one that counts the others."""
        named = ((self._sources.get(track), text) for track, text in self._reports)
        lines = [printable(f"{source}: {text}") for source, text in named if source]
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
