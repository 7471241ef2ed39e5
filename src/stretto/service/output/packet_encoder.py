"""Functions that encode single protobuf fields.

The fields of the service's own packets have a fixed order that differs from the order of their
numbers (docs/formats/service.md, "Order of packets"), so message classes can't encode them.
"""

from __future__ import annotations

from stretto.protozero.wire import bytes_field as blob
from stretto.protozero.wire import read_varint, varint
from stretto.protozero.wire import varint_field as number

__all__ = ["blob", "framed", "number", "text", "varint", "whole_packets"]


def text(field: int, value: str) -> bytes:
    """Encode a string field."""
    return blob(field, value.encode("utf-8", "surrogateescape"))


def framed(packet: bytes) -> bytes:
    """Encode a packet as Trace.packet (field 1)."""
    return blob(1, packet)


def whole_packets(trace: bytes, limit: int) -> int:
    """Return the size of the longest prefix of whole packets that is smaller than `limit`.

    Args:
        trace: Framed packets, as returned by `Readback.read` and `framed`.
        limit: Exclusive limit of the result, in bytes.
    """
    end = 0
    while end < len(trace):
        size, start = read_varint(trace, end + 1, len(trace))
        if start + size >= limit or start + size > len(trace):
            break
        end = start + size
    return end
