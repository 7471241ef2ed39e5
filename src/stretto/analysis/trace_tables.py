"""Imports a trace into tables, with the native importer."""

from __future__ import annotations

import io
import zlib
from typing import TYPE_CHECKING, cast

from stretto.analysis.open_packets import open_packets, open_trace

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import BinaryIO

    from stretto import _native

PIECE_BYTES = 1 << 20

UNREAD = {
    "stretto_unread_bytes": "bytes at the end, or in damaged places",
    "stretto_undecodable_packets": "malformed packets",
    "stretto_unread_packets": "packets of kinds that are not imported yet",
    "stretto_unread_events": "track events of kinds that are not imported yet",
    "stretto_unread_kernel_events": "kernel events of kinds that are not imported yet",
    "stretto_unread_fields": "typed arguments that are not imported yet",
}
"""What the importer left out, by statistic."""


def import_trace(
    trace: str | os.PathLike[str] | bytes | BinaryIO,
    watch: Callable[[bytes], object] = lambda _: None,
    inflate: Callable[[bytes], bytes] = zlib.decompress,
) -> _native.TraceImporter:
    """Import a trace: Perfetto's or Fuchsia's format, compressed by gzip or not.

    Args:
        trace: A path (`-` is standard input), the bytes of a trace, or a file that is read from
            its current position.
        watch: Called with each piece of the packets.
        inflate: Called with the content of each compressed packet.

    Raises:
        OSError: The file can't be read.
        DecodeError: The file is not a trace.
    """
    if isinstance(trace, bytes | bytearray | memoryview):
        with open_packets(io.BufferedReader(io.BytesIO(trace))) as packets:
            return _import(packets, watch, inflate)
    if hasattr(trace, "read"):
        file = cast("BinaryIO", trace)
        buffered = file if hasattr(file, "peek") else io.BufferedReader(cast("io.RawIOBase", file))
        with open_packets(cast("io.BufferedReader", buffered)) as packets:
            return _import(packets, watch, inflate)
    with open_trace(str(trace)) as packets:
        return _import(packets, watch, inflate)


def _import(
    packets: BinaryIO, watch: Callable[[bytes], object], inflate: Callable[[bytes], bytes]
) -> _native.TraceImporter:
    from stretto import _native  # Other readers work without the native part.

    importer = _native.TraceImporter(inflate)
    while piece := packets.read(PIECE_BYTES):
        importer.feed(piece)
        watch(piece)
    importer.finish()
    return importer


def statistics(importer: _native.TraceImporter) -> dict[str, int]:
    """Return the sum of each statistic's values."""
    sums: dict[str, int] = {}
    for name, _, _, _, value in importer.rows("stats")[1]:
        sums[name] = sums.get(name, 0) + value
    return sums
