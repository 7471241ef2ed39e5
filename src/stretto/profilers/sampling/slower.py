"""How a trace says that samples are further apart than the user wanted.

Sampling has a budget of CPU time (native/probes/sampler_budget.h). Beyond it, the period is a
multiple of the wanted one. From there on the sequence has other defaults, with the new period, and
the track with the name of the data source an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.base.notes_tracks import notes_track
from stretto.profilers.sampling.settings import SOURCES
from stretto.protos.trace import TracePacket, TrackDescriptor, TrackEvent

if TYPE_CHECKING:
    from stretto.profilers.sampling.settings import Settings

REASON = "samples took more than a quarter of a CPU"


def period_note(settings: Settings, pid: int, factor: int) -> list[TracePacket]:
    """Return packets, without times, that tell the period from now on.

    Args:
        settings: The settings of the profile.
        pid: The sampled process.
        factor: How many wanted periods are between two samples.
    """
    source = SOURCES[settings.mode]
    uuid = notes_track(source)
    text = f"process {pid}: sampled every {settings.period_ns * factor / 1e6:g} ms"
    text += f", as the {REASON}" if factor > 1 else " again"
    event = TrackEvent(type=TrackEvent.TYPE_INSTANT, track_uuid=uuid, name=text)
    return [
        TracePacket(track_descriptor=TrackDescriptor(uuid=uuid, name=source)),
        TracePacket(track_event=event),
    ]


def slow_text(settings: Settings, factor: int) -> str:
    """Return what the summary says of the longest period; "" if all were the wanted one."""
    if factor == 1:
        return ""
    longest = settings.period_ns * factor / 1e6
    return f"sampled less often for a time, down to every {longest:g} ms: the {REASON}"
