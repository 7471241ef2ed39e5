"""`python.gc`: each run of the garbage collector is a slice on the thread that pays for it."""

from __future__ import annotations

import gc

import stretto
from stretto.client.track_event import slots

category = stretto.Category("python.gc", "runs of the garbage collector", ["slow"])


class _Collections:
    """Listens to the collector, which runs on one thread at a time and never inside itself."""

    def __init__(self) -> None:
        self._track: stretto.Track | None = None

    def on_phase(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._track = stretto.thread_track()
            category.begin("garbage collection", track=self._track, generation=info["generation"])
        elif self._track is not None:
            track, self._track = self._track, None
            category.end(
                track=track, collected=info["collected"], uncollectable=info["uncollectable"]
            )

    def on_change(self, enabled: bool) -> None:
        listening = self.on_phase in gc.callbacks
        if enabled and not listening:
            gc.callbacks.append(self.on_phase)
        elif listening and not enabled:
            gc.callbacks.remove(self.on_phase)
            self._track = None


_collections: _Collections | None = None


def install() -> None:
    """Listen to the collector whenever a session records the category."""
    global _collections
    if _collections is None:
        _collections = _Collections()
        slots.observe(category, _collections.on_change)
