"""Splits a stream into messages; the stream may arrive in pieces of any size.

A trace is a repeated field of packets ::

    tokenizer = Tokenizer(marker=SYNC_MARKER)
    for piece in pieces:
        for packet in tokenizer.append(piece): ...   # bytes
    for packet in tokenizer.end(): ...
    if tokenizer.errors: ...  # bytes_skipped were damaged

`make` converts the bytes of each message: to bytes by default, to a tuple of values with a
`Selector`, or with any other callable ::

    rows = Tokenizer(select(TracePacket, "timestamp", "track_event.type"))
    for timestamp, kind in rows.append(trace): ...

A message that is complete within a piece is not copied. Fields with other numbers are skipped.

Recovery: Perfetto's service regularly ends a packet with a marker of 16 bytes. After malformed
data, or a message above `max_size`, reading continues after the next marker; without a marker,
reading stops.
"""

from __future__ import annotations

try:
    from stretto._native import Tokenizer
except ImportError:
    from stretto.protozero.tokenizer_pure import Tokenizer  # type: ignore[assignment]

__all__ = ["Tokenizer"]
