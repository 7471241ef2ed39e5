"""A trace in the JSON form of its messages, packet by packet.

    {"packet":[
    {"timestamp":"5","trackEvent":{"type":"TYPE_INSTANT","name":"x"}},
    …
    ]}

The mapping is protobuf's. Only one packet is in memory at a time. Chrome's JSON format, an array of
events or an object with `traceEvents`, is refused: see `chrome_packets`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from stretto.base.errors import ConfigError
from stretto.protos.trace import TracePacket
from stretto.protozero.json_format import format_json, parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TextIO

START, SEPARATOR, END = '{"packet":[\n', ",\n", "\n]}\n"
_READ_CHARS = 1 << 18
_MAX_PACKET_CHARS = 1 << 30
"""Enough for the largest packet that is read, 64 MiB: a byte takes at most six characters."""
_HEAD = re.compile(r'\s*\{\s*"packet"\s*:\s*\[')
_MAX_HEAD_CHARS = 1000
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+("?)|[{}]', re.DOTALL)
_BETWEEN = re.compile(r"\s*(?:,\s*)?")
_TAIL = re.compile(r"\s*\]\s*\}\s*")


def write_packets(packets: Iterable[TracePacket], write: Callable[[str], object]) -> int:
    """Write packets as JSON.

    Returns:
        The number of packets.
    """
    count = 0
    write(START)
    for packet in packets:
        write(SEPARATOR if count else "")
        write(format_json(packet))
        count += 1
    write(END)
    return count


def parse_packets(file: TextIO) -> Iterator[TracePacket]:
    """Parse the packets of a JSON text.

    Raises:
        ConfigError: The text isn't JSON, or not a trace; the message says which packet is wrong.
    """
    return _Parser(file).packets()


class _Parser:
    """Splits a text into packets block by block; only the blocks of one packet are in memory."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._text = file.read(_READ_CHARS)
        self._at = 0

    def packets(self) -> Iterator[TracePacket]:
        head = _HEAD.match(self._text)
        if head is None:
            raise ConfigError(_complaint(self._text))
        self._at = head.end()
        number = 0
        while self._find_packet(number):
            yield _packet(self._packet_text(), number)
            number += 1

    def _find_packet(self, number: int) -> bool:
        """Move to the start of the next packet; return False if there is none."""
        while True:
            between = _BETWEEN.match(self._text, self._at)
            start = between.end() if between is not None else self._at
            if self._text.startswith("{", start):
                self._at = start
                return True
            more = self._file.read(_READ_CHARS)
            self._text, self._at = self._text[self._at :] + more, 0
            if more and len(self._text) <= 2 * _READ_CHARS:
                continue
            if _TAIL.fullmatch(self._text) is None:
                raise ConfigError(f"this JSON is incomplete or malformed after {number} packets")
            return False

    def _packet_text(self) -> str:
        """Return the text of the object at the current position, and move behind it."""
        pieces, size, braces = [], 0, _Braces()
        while not (end := braces.end_in(self._text, self._at)):
            pieces.append(self._text[self._at :])
            size += len(pieces[-1])
            self._text, self._at = self._file.read(_READ_CHARS), 0
            if not self._text or size > _MAX_PACKET_CHARS:
                raise ConfigError("this JSON ends within a packet, or a packet is too large")
        pieces.append(self._text[self._at : end])
        self._at = end
        return "".join(pieces)


class _Braces:
    """Finds the end of an object in a text that comes in blocks. Each block is scanned once."""

    def __init__(self) -> None:
        self._depth = 0
        self._open = ""  # The start of a string that continues in the next block; or "".

    def end_in(self, piece: str, start: int) -> int:
        """Return the position behind the object's end; 0 if the end is in a later block."""
        text, shift = self._open + piece, len(self._open)
        self._open = ""
        for token in _TOKEN.finditer(text, start):
            if token[1] == "":
                self._open = '"' + "\\" * (_trailing_backslashes(text) % 2)
            elif token[1] is None:
                self._depth += 1 if token[0] == "{" else -1
                if not self._depth:
                    return token.end() - shift
        return 0


def _trailing_backslashes(text: str) -> int:
    return len(text) - len(text.rstrip("\\"))


def _packet(text: str, number: int) -> TracePacket:
    try:
        return parse_json(text, TracePacket)
    except ConfigError as error:
        raise ConfigError(f"packet {number}: {error}") from error


def _complaint(text: str) -> str:
    begins = text.lstrip()[:_MAX_HEAD_CHARS]
    if begins.startswith("[") or '"traceEvents"' in begins:
        return (
            "this is Chrome's JSON, which isn't read; what is read is the JSON form of Perfetto's "
            'messages: {"packet":[…]}. The Perfetto UI opens Chrome\'s JSON as it is'
        )
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if len(text) < _READ_CHARS:
            return f"this is no JSON, line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):
        pass  # Raised by the parser if a number is too long, or the nesting is too deep.
    return 'this is no trace: it should begin with {"packet":['
