"""The intended differences from Perfetto v56, exactly as docs/compat.md lists them.

Each rule compares one field of two values at the same path, and makes them equal if
its condition holds. Any other difference is a defect.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.differential.wire import fields_and_tags

LOSS = 4
"""Index of previous_packet_dropped in the result of `describe_packet`."""


def mask_packet(ours: list[Any], theirs: list[Any]) -> None:
    """Ignore previous_packet_dropped: v56 writes 1, but Stretto writes the reason of the loss."""
    if len(ours) > LOSS and len(theirs) > LOSS and theirs[LOSS] == 1 and ours[LOSS] & 1:
        ours[LOSS] = 1


def mask_buffer(ours: dict[str, int], theirs: dict[str, int]) -> None:
    """Ignore abi_violations of a buffer, because v56 also counts aborted packets there."""
    aborted = theirs["trace_writer_packet_loss"]
    if aborted == ours["trace_writer_packet_loss"]:
        theirs["abi_violations"] -= aborted


def mask_clone(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Ignore writer_stats of a clone, because v56 always leaves this field empty."""
    if not theirs["writer_stats"]:
        ours["writer_stats"] = []


def is_refused_by_us(packet: bytes) -> bool:
    """Return whether Stretto counts a packet in invalid_packets, although v56 accepts the packet.

    Stretto refuses packets of three kinds: with field 0, at which some readers stop; with tags
    above 32 bits, which readers treat differently; and with zstd_compressed_packets, which only
    v58 reserves.
    """
    return any(number in (0, 133) or tag > 0xFFFF_FFFF for number, tag in fields_and_tags(packet))


def first_relocation(stats: list[dict[str, Any]]) -> int | None:
    """Return the index of the first statistics with relocated chunks, or None.

    If a chunk was scraped and read before its commit, v58 and Stretto move the chunk to the write
    position at the commit. v56 doesn't move the chunk, so all later contents of the buffer differ.
    """
    for index, each in enumerate(stats):
        if any(buffer["chunks_relocated"] for buffer in each["buffers"]):
            return index
    return None
