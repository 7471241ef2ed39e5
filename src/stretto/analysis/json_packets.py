"""A trace in the JSON form of its messages, packet by packet.

    {"packet":[
    {"timestamp":"5","trackEvent":{"type":"TYPE_INSTANT","name":"x"}},
    …
    ]}

The mapping is protobuf's; only one packet is in memory at a time. Chrome's JSON, an array of events
or an object with `traceEvents`, is something else, and refused.
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
_MAX_PACKET_CHARS = 16 << 20
_HEAD = re.compile(r'\s*\{\s*"packet"\s*:\s*\[')
_MAX_HEAD_CHARS = 1000
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*("?)|[{}]', re.DOTALL)
_BETWEEN = re.compile(r"\s*(?:,\s*)?")
_TAIL = re.compile(r"\s*\]\s*\}\s*")


def write_packets(packets: Iterable[TracePacket], write: Callable[[str], object]) -> int:
    """Write packets as JSON.

    Returns:
        How many they are.
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
    """The packets of a JSON text.

    Raises:
        ConfigError: It is none, or not of a trace; it says which packet is wrong.
    """
    return _Parser(file).packets()


class _Parser:
    """Looks at one piece of a text, or at as much as a packet needs."""

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
            end = self._packet_end()
            yield _packet(self._text[self._at : end], number)
            self._at = end
            number += 1

    def _more(self) -> bool:
        more = self._file.read(_READ_CHARS)
        self._text = self._text[self._at :] + more
        self._at = 0
        return bool(more)

    def _find_packet(self, number: int) -> bool:
        """Go to the next packet; False at the end of the text."""
        while True:
            between = _BETWEEN.match(self._text, self._at)
            start = between.end() if between is not None else self._at
            if self._text.startswith("{", start):
                self._at = start
                return True
            if self._more() and len(self._text) <= 2 * _READ_CHARS:
                continue
            if _TAIL.fullmatch(self._text) is None:
                raise ConfigError(f"this JSON breaks off, or is wrong, behind {number} packets")
            return False

    def _packet_end(self) -> int:
        """Where the object ends that begins here; more is read until it does."""
        depth, seen = 0, self._at
        while True:
            for token in _TOKEN.finditer(self._text, seen):
                if token[1] == "" and token[0][0] == '"':
                    break  # it may end in the next piece
                seen = token.end()
                depth += {"{": 1, "}": -1}.get(token[0], 0)
                if not depth:
                    return seen
            seen -= self._at
            if not self._more() or len(self._text) > _MAX_PACKET_CHARS:
                raise ConfigError("this JSON breaks off within a packet, or has one without end")


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
    return 'this is no trace: it should begin with {"packet":['
