"""Runs a sequence of operations on both services.

A sequence with different results is shortened as long as the results still differ.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tests.conformance.differential import intended
from tests.conformance.differential.session import Sequence, Session

if TYPE_CHECKING:
    from tests.conformance.differential.services import Service


AFTER_THE_END = -2  # The results from this index on were read after the end of tracing.


class Pair:
    """Stretto's and Perfetto's service, which run the same sequences of operations."""

    def __init__(self, ours: Service, theirs: Service) -> None:
        self.services = ours, theirs
        self.count = 0
        self.cut = 0  # The number of sequences that `_before_relocation` has shortened.

    def run(self, sequence: Sequence) -> list[str]:
        """Run a sequence on both services; return each difference as its path and two values."""
        ours, theirs = self._run(sequence)
        if intended.first_relocation(ours[-1:]) is not None:
            self.cut += 1
            sequence = self._before_relocation(sequence)
            ours, theirs = self._run(sequence)
        if intended.first_relocation(ours[-1:]) is not None:
            del (
                ours[AFTER_THE_END:],
                theirs[AFTER_THE_END:],
            )  # A chunk was moved at the end of tracing: ignore all results after the end.
        return list(differences(sequence, ours, theirs))

    def _run(self, sequence: Sequence) -> tuple[list[Any], list[Any]]:
        self.count += 1
        ours, theirs = (Session(each.sockets, sequence, self.count).run() for each in self.services)
        return ours, theirs

    def _before_relocation(self, sequence: Sequence) -> Sequence:
        """Return the sequence without the first operation that makes Stretto move a chunk.

        All operations after this operation are also omitted.
        """
        asking = copy.deepcopy(sequence)
        asking.operations = [
            each for operation in sequence.operations for each in (operation, {"do": "stats"})
        ]
        ours, _ = self._run(asking)
        moved = intended.first_relocation(ours[1 : 2 * len(sequence.operations) : 2])
        shorter = copy.deepcopy(sequence)
        if moved is not None:
            del shorter.operations[moved:]
        return shorter


def differences(sequence: Sequence, ours: Any, theirs: Any) -> Iterator[str]:
    """Yield the differences between two lists of results, operation by operation."""
    names = [each["do"] for each in sequence.operations] + [
        "read",
        "stats",
        "last read",
        "last stats",
    ]
    names = names[: len(ours)]
    theirs = without_refused(names, theirs)
    ours, theirs = with_plain_ids(names, ours), with_plain_ids(names, theirs)
    mask(names, ours, theirs)
    for index, (name, a, b) in enumerate(zip(names, ours, theirs, strict=True)):
        for path, left, right in _walk(a, b, ""):
            yield f"{index} {name}{path}: ours {left!r}, Perfetto's {right!r}"


def mask(names: list[str], ours: list[Any], theirs: list[Any]) -> None:
    """If Stretto differs from Perfetto on purpose in some values, make these values equal."""
    for name, a, b in zip(names, ours, theirs, strict=True):
        if name == "clone":
            _mask_packets(a[1], b[1])
            _mask_stats(a[2], b[2])
            intended.mask_clone(a[2], b[2])
        elif name.endswith("read"):
            _mask_packets(a, b)
        elif name.endswith("stats"):
            _mask_stats(a, b)


def _mask_packets(ours: list[Any], theirs: list[Any]) -> None:
    for a, b in zip(ours, theirs, strict=False):
        intended.mask_packet(a, b)


def _mask_stats(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    for a, b in zip(ours["buffers"], theirs["buffers"], strict=False):
        intended.mask_buffer(a, b)


def without_refused(names: list[str], theirs: list[Any]) -> list[Any]:
    """Return the results of Perfetto's service without packets that Stretto's service refuses."""
    refused = 0
    out: list[Any] = []
    for name, each in zip(names, theirs, strict=True):
        if name.endswith("read"):
            kept = _kept_packets(each)
            refused += len(each) - len(kept)
            out.append(kept)
        elif name.endswith("stats"):
            out.append({**each, "invalid_packets": each["invalid_packets"] + refused})
        elif name == "clone":
            kept = _kept_packets(each[1])
            invalid = each[2]["invalid_packets"] + refused + len(each[1]) - len(kept)
            out.append([each[0], kept, {**each[2], "invalid_packets": invalid}])
        else:
            out.append(each)
    return out


def _kept_packets(packets: list[Any]) -> list[Any]:
    return [
        packet
        for packet in packets
        if packet[0] == "service" or not intended.is_refused_by_us(bytes.fromhex(packet[0]))
    ]


def with_plain_ids(names: list[str], seen: list[Any]) -> list[Any]:
    """Return the results with sequence ids numbered in the order of their first packets.

    The services assign ids at different times, which makes no difference to readers of the trace.
    The ids of a clone are numbered separately.
    """
    ids: dict[int, int] = {}
    out: list[Any] = []
    for name, each in zip(names, seen, strict=True):
        if name.endswith("read"):
            out.append(_plain_packets(each, ids))
        elif name.endswith("stats"):
            out.append(_plain_stats(each, ids))
        elif name == "clone":
            known: dict[int, int] = {}
            packets = _plain_packets(each[1], known)
            out.append([each[0], packets, _plain_stats(each[2], known)])
        else:
            out.append(each)
    return out


def _plain_packets(packets: list[Any], ids: dict[int, int]) -> list[Any]:
    out = []
    for packet in packets:
        if packet[0] != "service":
            packet = [packet[0], ids.setdefault(packet[1], len(ids)), *packet[2:]]
        out.append(packet)
    return out


def _plain_stats(stats: dict[str, Any], ids: dict[int, int]) -> dict[str, Any]:
    """Return buffer statistics in which the numbers of `ids` replace the writers' sequence ids."""
    writers = []
    for writer in stats["writer_stats"]:
        (_, ident), *rest = writer
        writers.append([str(ids.get(ident, "none")), *rest])
    return {**stats, "writer_stats": sorted(writers)}


def _walk(a: Any, b: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if a == b:
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for key in a:
            yield from _walk(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (left, right) in enumerate(zip(a, b, strict=True)):
            yield from _walk(left, right, f"{path}[{index}]")
    else:
        yield path, a, b


def shortened(pair: Pair, sequence: Sequence) -> Sequence:
    """Return a shorter sequence for which the results of the services still differ."""
    size = max(1, len(sequence.operations) // 2)
    while True:
        at, before = 0, len(sequence.operations)
        while at < len(sequence.operations):
            shorter = copy.deepcopy(sequence)
            del shorter.operations[at : at + size]
            if pair.run(shorter):
                sequence = shorter
            else:
                at += size
        if size == 1 and len(sequence.operations) == before:
            return sequence
        size = max(1, size // 2)
