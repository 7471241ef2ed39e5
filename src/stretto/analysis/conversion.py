"""Conversion of whole traces between formats.

    fxt ──┐                ┌── fxt
    text ─┼── packets ─────┼── text
    json ─┤                └── json
  chrome ─┘

A conversion between two formats other than packets makes packets first, in a temporary file. A
trace is never in memory as a whole, except Chrome's JSON, which is recognized by its content.
"""

from __future__ import annotations

import io
import tempfile
from typing import TYPE_CHECKING, cast

from stretto.analysis import json_packets, text_packets
from stretto.analysis.chrome_packets import import_chrome
from stretto.analysis.empty_trace import EmptyTraceError
from stretto.analysis.fxt.exporter import export_fxt
from stretto.analysis.fxt.importer import import_fxt
from stretto.analysis.fxt.outcome import Outcome
from stretto.analysis.packet_stream import PacketStream
from stretto.analysis.trace_format import FXT, JSON, PFTRACE, TEXT, is_chrome_json
from stretto.analysis.unknown_fields import count_unknown_fields
from stretto.base.errors import ConfigError
from stretto.protozero import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from stretto.protos.trace import TracePacket

    Write = Callable[[bytes], object]

_PEEKED_BYTES = 1 << 16


def convert(file: BinaryIO, source: str, write: Write, target: str, *, name: str = "-") -> Outcome:
    """Convert a trace.

    Args:
        file: The trace.
        source: The format of the trace, one of `trace_format.FORMATS`.
        write: Called with each part of the result.
        target: The format of the result; not `source`.
        name: The name of the file, for error messages.

    Returns:
        Counts of the records that were written and of those that were left out.

    Raises:
        ConfigError: A text or JSON trace is malformed; the message says where.
        DecodeError: An FXT trace is of a big-endian machine.
        EmptyTraceError: A text or JSON trace has no packet or event.
    """
    if source == PFTRACE:
        return _from_packets(file, target, write)
    if target == PFTRACE:
        return _to_packets(file, source, write, name)
    with tempfile.TemporaryFile(prefix="stretto-") as packets:
        first = _to_packets(file, source, packets.write, name)
        packets.seek(0)
        second = _from_packets(packets, target, write)
    return Outcome(second.made, first.left_out + second.left_out)


def _to_packets(file: BinaryIO, source: str, write: Write, name: str) -> Outcome:
    if source == FXT:
        return import_fxt(file, write)
    reader = io.BufferedReader(cast("io.RawIOBase", file), _PEEKED_BYTES)
    if source == JSON and is_chrome_json(reader.peek(_PEEKED_BYTES)):
        try:
            return import_chrome(reader, write)
        finally:
            reader.detach()
    outcome = Outcome()
    text = io.TextIOWrapper(reader, encoding="utf-8")
    try:
        if source == TEXT:
            found = text_packets.parse_packets(text, name, outcome.left_out)
        else:
            found = json_packets.parse_packets(text)
        for packet in found:
            write(wire.bytes_field(1, packet.encode()))
            outcome.made["packet"] += 1
    except UnicodeDecodeError as error:
        raise ConfigError(f"the text isn't in UTF-8: {error}") from error
    finally:
        text.detach().detach()
    if not outcome.made:
        raise EmptyTraceError
    return outcome


def _from_packets(file: BinaryIO, target: str, write: Write) -> Outcome:
    if target == FXT:
        return export_fxt(file, write)
    packets = PacketStream(file)
    outcome = Outcome()

    def write_text(text: str) -> None:
        write(text.encode(errors="surrogateescape"))

    if target == JSON:
        json_packets.write_packets(_counted(packets, outcome), write_text)
    else:
        for packet in packets:
            write_text(text_packets.packet_text(packet))
            outcome.made["packet"] += 1
    outcome.leave_out("damaged packets", packets.damaged)
    return outcome


def _counted(packets: Iterable[TracePacket], outcome: Outcome) -> Iterator[TracePacket]:
    for packet in packets:
        outcome.made["packet"] += 1
        outcome.leave_out("fields that the schema doesn't know", count_unknown_fields(packet))
        yield packet
