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
import re
import tempfile
from typing import TYPE_CHECKING, cast

from stretto.analysis import json_packets, text_packets
from stretto.analysis.chrome_packets import import_chrome, is_chrome_json
from stretto.analysis.empty_trace import EmptyTraceError
from stretto.analysis.fxt.exporter import export_fxt
from stretto.analysis.fxt.format import BIG_ENDIAN_MAGIC_BYTES, MAGIC_BYTES
from stretto.analysis.fxt.importer import import_fxt
from stretto.analysis.fxt.outcome import Outcome
from stretto.analysis.packet_stream import PacketStream
from stretto.analysis.unknown_fields import count_unknown_fields
from stretto.base.errors import ConfigError
from stretto.protozero import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from stretto.protos.trace import TracePacket

    Write = Callable[[bytes], object]

PFTRACE, FXT, TEXT, JSON = "pftrace", "fxt", "text", "json"
FORMATS = (PFTRACE, FXT, TEXT, JSON)
SNIFFED_BYTES = 4096
_ENDINGS = {
    ".pftrace": PFTRACE,
    ".perfetto-trace": PFTRACE,
    ".pb": PFTRACE,
    ".fxt": FXT,
    ".txt": TEXT,
    ".pbtxt": TEXT,
    ".textproto": TEXT,
    ".json": JSON,
}
_JSON_START = re.compile(rb"""\s*(?:\{\s*(?:"[\w@$]|\}|\Z)|\[\s*(?:[\[{\]]|\Z))""")
_TEXT_START = re.compile(rb"(?:\s+|#[^\n]*\n)*packet\s*:?\s*\{")
_PEEKED_BYTES = 1 << 16
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
_PACKET_START = re.compile(rb"\n(?:[\x80-\xff]{0,4}[\x00-\x7f])")


def format_of_name(name: str) -> str | None:
    """Return the format that belongs to a file name's extension; None if unknown."""
    for ending, found in _ENDINGS.items():
        if name.lower().endswith(ending):
            return found
    return None


def format_of_start(start: bytes) -> str | None:
    """Return the format detected in the first `SNIFFED_BYTES` of a file; None if not detected."""
    if start.startswith((MAGIC_BYTES, BIG_ENDIAN_MAGIC_BYTES)):
        return FXT
    if _TEXT_START.match(start):
        return TEXT
    # A brace alone doesn't identify JSON: a packet of 123 bytes begins with "\n{".
    if _JSON_START.match(start):
        return JSON
    return PFTRACE if _PACKET_START.match(start) else None


def format_of_file(name: str, start: bytes) -> str | None:
    """Return the format of a file by its first `SNIFFED_BYTES`, or else by its name."""
    shown, named = format_of_start(start), format_of_name(name)
    if shown is None or (shown == PFTRACE and named is not None and not _NO_TEXT.search(start)):
        return named  # Text may look like packets: both can begin with a newline byte.
    return shown


def convert(file: BinaryIO, source: str, write: Write, target: str, *, name: str = "-") -> Outcome:
    """Convert a trace.

    Args:
        file: The trace.
        source: The format of the trace, one of `FORMATS`.
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
