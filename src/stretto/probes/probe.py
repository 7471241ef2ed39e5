"""The data sources of `stretto probes`, which run on one thread.

The producer connection calls a data source on the connection's thread. Polls run on the thread of
the task runner. So each callback is passed on to the runner's thread, and its caller waits. A
source therefore needs no lock, and all its packets are in one sequence.
"""

from __future__ import annotations

from _thread import _local
from functools import partial

import stretto
from stretto import _native
from stretto.base.notes_tracks import notes_track
from stretto.probes.poll import Poll
from stretto.protos.trace import TracePacket, TrackDescriptor, TrackEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import ClassVar

    from stretto.probes.budget import Budget
    from stretto.probes.machine import Machine

BOOTTIME = 6  # BUILTIN_CLOCK_BOOTTIME
SLOW = "sampled less often: the samples took more than a twentieth of a CPU"


class Probe(stretto.DataSource):
    """A data source that reads the machine. Subclasses define `start`, and more if needed."""

    buffer_exhausted_policy = _native.STALL_THEN_DROP
    machine: ClassVar[Machine]
    """Set once, before the first session."""

    def on_start(self) -> None:
        self.machine.call(self.start)

    def on_flush(self) -> None:
        if type(self).flush is not Probe.flush:
            self.machine.call(self.flush)

    def on_clear_incremental_state(self) -> None:
        self.machine.call(self.clear_incremental_state)

    def on_stop(self) -> None:
        self.machine.call(self._end)

    def _end(self) -> None:
        self.stop()
        self._writers = _local()  # Frees the writer, which then commits its last packets.

    def poll(
        self,
        periods_ms: Mapping[str, int],
        sample: Callable[[Iterable[str]], object],
        budget: Budget | None = None,
    ) -> Poll:
        """Sample several things periodically; `perfetto.metatrace` records how long it takes.

        The arguments are those of `Poll`. The user and the trace are told when the budget begins to
        postpone samples.
        """
        return Poll(
            self.machine,
            periods_ms,
            partial(self.machine.observed, self.name, sample),
            budget,
            lambda: self.note(SLOW),
        )

    def note(self, text: str) -> None:
        """Tell the user, and the trace by an event on the track with the name of the source."""
        self.machine.tell(f"{self.name}: {text}")
        uuid = notes_track(self.name)
        track = TrackDescriptor(uuid=uuid, name=self.name)
        event = TrackEvent(type=TrackEvent.TYPE_INSTANT, track_uuid=uuid, name=text)
        for packet in TracePacket(track_descriptor=track), TracePacket(track_event=event):
            packet.timestamp, packet.timestamp_clock_id = self.machine.now_ns(), BOOTTIME
            self.write(packet)

    # --- on the runner's thread

    def start(self) -> None:
        """Begin to record."""

    def flush(self) -> None:
        """Write the packets that are kept back."""

    def clear_incremental_state(self) -> None:
        """Write again the state that later packets need."""

    def stop(self) -> None:
        """End all polls."""
