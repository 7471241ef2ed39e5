"""Tracks on which data sources tell the reader of a trace what they lack, as names of events.

    linux.perf  ──|── not recorded: this machine has no such counter
    python.cpu  ──|── samples are missing: they were late       number: 430

Each data source has a track, which bears its name. The track's uuid is made of the name, so that
a consumer finds the notes without reading the rest of the trace.
"""

from __future__ import annotations

from binascii import crc32

NOTES = 0x6E6F7465
"""The upper half of the uuids of these tracks; the lower half is made of the source's name."""

SHORTFALLS = "python.samples"
"""The category of the events that say what samples lack."""
NUMBER = "number"
"""The argument of these events: how many samples lack it since the event before."""


def notes_track(source: str) -> int:
    """Return the uuid of the track with the notes of a data source."""
    return NOTES << 32 | crc32(source.encode())
