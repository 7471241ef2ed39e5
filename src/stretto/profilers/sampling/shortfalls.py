"""How a trace says which samples are missing, and which have no C functions.

    python.cpu  ──|── samples are missing: they were late       number: 430

The track with the name of the data source has an event for each reason, at most twice a second. Its
argument is the number of samples since the event before, so that readers add the numbers up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.base.notes_tracks import NUMBER, SHORTFALLS, notes_track
from stretto.profilers.sampling.settings import SOURCES
from stretto.protos.trace import DebugAnnotation, TracePacket, TrackDescriptor, TrackEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stretto.profilers.sampling.settings import Settings

NOT_SEEN = "no known thread was found running"
REFUSED = (
    "the kernel refused to stop the thread: a debugger traces it, or a container forbids `ptrace`"
)
OVER_LIMIT = "the thread was not stopped, as stops take at most 5 % of the time"
_LATE = "samples are missing: they were late"
_UNSEEN = f"samples are missing: {NOT_SEEN}"
_NO_C = "samples have no C functions: "


class Shortfalls:
    """Tells what the samples of one process lack.

    Args:
        settings: The settings of the profile.
    """

    def __init__(self, settings: Settings) -> None:
        self._source = SOURCES[settings.mode]
        self._told: dict[str, int] = {}
        self._samples = 0

    def packets(self, stats: Mapping[str, int], problem: str) -> list[TracePacket]:
        """Return packets, without times, about the samples since the last call.

        Args:
            stats: The counts of `PythonSampler.stats`.
            problem: Why no sample since the last call has C functions; "" if some may.
        """
        numbers = self._since_last_call(stats, problem)
        events = [self._event(text, number) for text, number in numbers.items() if number]
        if not events:
            return []
        track = TrackDescriptor(uuid=notes_track(self._source), name=self._source)
        return [TracePacket(track_descriptor=track), *events]

    def _since_last_call(self, stats: Mapping[str, int], problem: str) -> dict[str, int]:
        totals = {
            _LATE: stats["late"],
            _UNSEEN: stats["unseen"],
            _NO_C + REFUSED: stats["refused"],
            _NO_C + OVER_LIMIT: stats["unstopped"] - stats["refused"],
        }
        new = {text: number - self._told.get(text, 0) for text, number in totals.items()}
        if problem:
            new[_NO_C + problem] = stats["samples"] - self._samples
        self._told, self._samples = totals, stats["samples"]
        return new

    def _event(self, text: str, number: int) -> TracePacket:
        event = TrackEvent(
            type=TrackEvent.TYPE_INSTANT,
            track_uuid=notes_track(self._source),
            categories=[SHORTFALLS],
            name=text,
            debug_annotations=[DebugAnnotation(name=NUMBER, uint_value=number)],
        )
        return TracePacket(track_event=event)
