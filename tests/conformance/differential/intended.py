"""The intended differences from Perfetto v56: those of docs/compat.md and no others.

Each rule compares one field of two values at the same path, and makes them equal if
its condition holds. Any other difference is a defect.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.differential.wire import fields_and_tags

LOSS = 4
"""Where a packet's previous_packet_dropped is, in what `describe_packet` gives."""


def mask_packet(ours: list[Any], theirs: list[Any]) -> None:
    """previous_packet_dropped, of a packet that has it: v56 writes 1, without a reason."""
    if len(ours) > LOSS and len(theirs) > LOSS and theirs[LOSS] == 1 and ours[LOSS] & 1:
        ours[LOSS] = 1


def mask_buffer(ours: dict[str, int], theirs: dict[str, int]) -> None:
    """abi_violations, of a buffer with aborted packets: v56 counts those, too."""
    aborted = theirs["trace_writer_packet_loss"]
    if aborted == ours["trace_writer_packet_loss"]:
        theirs["abi_violations"] -= aborted


def mask_clone(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """writer_stats, of a clone: those of v56 are always empty."""
    if not theirs["writer_stats"]:
        ours["writer_stats"] = []


def is_refused_by_us(packet: bytes) -> bool:
    """invalid_packets, of packets with a field that hides others, or that v58 reserves.

    That is field 0, where some readers stop, a tag above 32 bits, which readers treat
    differently, and zstd_compressed_packets, which v56 doesn't know.
    """
    return any(number in (0, 133) or tag > 0xFFFF_FFFF for number, tag in fields_and_tags(packet))


def first_relocation(stats: list[dict[str, Any]]) -> int | None:
    """chunks_relocated and its consequences, of a scraped chunk that had been read.

    When its writer commits it, v58 and Stretto move it to the write position. v56 leaves it
    where it is soon overwritten, so the buffers differ from then on.
    """
    for index, each in enumerate(stats):
        if any(buffer["chunks_relocated"] for buffer in each["buffers"]):
            return index
    return None
