"""Decodes trace bytes into a list of packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.base.errors import DecodeError
from stretto.protos.trace import TracePacket

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKET_TAG = 0x0A


def split_packets(trace: bytes) -> Iterator[bytes]:
    """Yield each encoded packet of a trace.

    Raises:
        DecodeError: The bytes aren't complete packets; the error contains the offset.
    """
    at = 0
    while at < len(trace):
        start = at
        if trace[at] != _PACKET_TAG:
            raise DecodeError(f"no packet at offset {at}: {trace[at : at + 8].hex()}")
        size, at = _read_size(trace, at + 1)
        if at + size > len(trace):
            raise DecodeError(f"the packet at offset {start} is cut short")
        yield trace[at : at + size]
        at += size


def _read_size(trace: bytes, at: int) -> tuple[int, int]:
    size = shift = 0
    while at < len(trace):
        byte = trace[at]
        at += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size, at
        shift += 7
    raise DecodeError("the trace ends within the size of a packet")


def decode_packets(trace: bytes) -> list[TracePacket]:
    """Decode all packets of a trace.

    Raises:
        DecodeError: The bytes aren't a trace.
    """
    return [TracePacket.decode(packet) for packet in split_packets(trace)]
