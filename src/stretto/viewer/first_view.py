"""What the UI shows when a trace is opened: the lanes of the program and of tasks are expanded."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING

import stretto
from stretto.protos.trace import TrackDescriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

START_BYTES = 16 << 20
"""The part of a trace in which its first process is looked for."""


def startup_commands(start: bytes) -> str:
    """Return the commands, as JSON, that the UI runs when it has loaded a trace; "" for none.

    The first process in a trace is the program: its child processes are described later. The names
    of the tracks of a process and its threads end with the pid and the tid.

    Args:
        start: the first bytes of the trace, up to `START_BYTES`.
    """
    if not stretto.available():
        return ""
    for data in _descriptors(start):
        process = TrackDescriptor.decode(data).process
        if process is not None:
            opened = f" {process.pid}$|^(asyncio|trio) tasks$"
            command = {"id": "dev.perfetto.ExpandTracksByRegex", "args": [opened]}
            return json.dumps([command], separators=(",", ":"))
    return ""


def _descriptors(start: bytes) -> Iterator[bytes]:
    """Yield the encoded TrackDescriptors, also those inside compressed packets."""
    from stretto import _native

    *_, compressed, descriptors = _native.scan_trace(start)
    yield from descriptors
    for packets in compressed:
        try:
            yield from _native.scan_trace(zlib.decompress(packets))[-1]
        except zlib.error:
            return  # The packet is damaged.
