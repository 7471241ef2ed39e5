"""Split a stream of messages that arrives in pieces.

A trace is a repeated field of packets. Pieces of it may end anywhere ::

    tokenizer = Tokenizer(marker=SYNC_MARKER)
    for piece in pieces:
        for packet in tokenizer.append(piece): ...   # bytes
    for packet in tokenizer.end(): ...
    if tokenizer.errors: ...  # bytes_skipped were damaged

What an iteration gives is chosen by `make`: bytes by default, a row of values
from a `Selector`, or what any other callable makes of the bytes ::

    rows = Tokenizer(select(TracePacket, "timestamp", "track_event.type"))
    for timestamp, kind in rows.append(trace): ...

The bytes of a message that lies whole in a piece are read where they lie.
Fields of other numbers are skipped.

Recovery: Perfetto's service ends a packet with a marker of 16 bytes now and
then. After something that can't be parsed, or a message above `max_size`,
reading goes on behind the next marker; without a marker it is over.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing `typing` takes longer than importing this module
if TYPE_CHECKING:
    from stretto._native import Tokenizer
else:
    try:
        from stretto._native import Tokenizer
    except ImportError:
        from stretto.protozero.tokenizer_pure import Tokenizer

__all__ = ["Tokenizer"]
