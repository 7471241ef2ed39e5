"""`python.gil_waits`: each wait for the GIL is a slice on a track below the thread that waits.

    worker 4712
      GIL        ▁▁▁[waiting for the GIL]▁▁▁[waiting for the GIL]   held_by_tid = 4711
    other 4711
      GIL        ▁▁▁▁▁▁▁▁[handing over the GIL]▁▁▁                  taken_by_tid = 4712

A thread that gives up the GIL because another one has asked for it waits until that one has it.

Native code observes the two places where CPython waits for its GIL: a thread that finds it free is
not observed at all. Waits below 20 us are only counted, in the instant `short waits for the GIL` at
the end. Where they can't be observed, `problems` says why; how often threads hand over the
GIL is counted anyway, by the recorder (`GIL hand-overs`).
"""

from __future__ import annotations

import stretto
from stretto._pyhooks import (
    pause_gil_waits,
    resume_gil_waits,
    start_gil_waits,
    stop_gil_waits,
    write_gil_waits,
)
from stretto.client import fork
from stretto.client.track_event import slots

category = stretto.Category("python.gil_waits", "waits for the GIL", ["slow"])
template = category.template("waiting for the GIL", "held_by_tid")
hand_over = category.template("handing over the GIL", "taken_by_tid")
_reasons: list[str] = []
"""Why the last session has no waits."""
_installed = False


def _make_track(thread: stretto.Track) -> stretto.Track:
    return stretto.Track("GIL", parent=thread)


def _on_change(enabled: bool) -> None:
    if not enabled:
        stop_gil_waits()
        return
    reason = start_gil_waits(template, hand_over, _make_track)
    _reasons[:] = [] if reason is None else [reason]


def _write_pending() -> None:
    short, short_ns, lost = write_gil_waits()
    if short:
        category.instant("short waits for the GIL", count=short, total_ns=short_ns)
    if lost:
        category.instant("lost waits for the GIL", count=lost)


def problems() -> list[str]:
    """Return a line if waits for the GIL can't be recorded here."""
    return [
        f"waits for the GIL are not recorded: {reason}; the counter of hand-overs is"
        for reason in _reasons
    ]


def install() -> None:
    """Record waits while a session records the category."""
    global _installed
    if not _installed:
        _installed = True
        slots.before_disable.append(_write_pending)
        fork.before.append(pause_gil_waits)
        fork.after_in_parent.append(resume_gil_waits)
        fork.when_connected.append(resume_gil_waits)
        slots.observe(category, _on_change)
