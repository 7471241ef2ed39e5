r"""A trace in the text form of its messages, packet by packet.

    packet {
      timestamp: 5
      track_event { type: TYPE_INSTANT  name: "x" }
    }
    packet { … }

Only one packet is in memory at a time. The syntax is that of `stretto.protozero.text_format`.
Traceconv writes unknown fields by their numbers (`124: "\010\001"`). Stretto writes unknown fields
in a comment. Neither format shows the type of an unknown field, so unknown fields are not read.
"""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING

from stretto.protos.trace import TracePacket
from stretto.protozero.text_format import TextFormatError, format_text, parse_text

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator

_MAX_PACKET_CHARS = 1 << 30
"""Enough for the largest packet that is read, 64 MiB: a byte takes at most four characters."""
_MAX_HEAD_CHARS = 1000
# The repeats are possessive (`++`, `*+`): backtracking in long texts needs much memory.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|#.*|[{}]')
_HEAD = re.compile(r"\s*+;?\s*+packet\s*+:?\s*+")
_NUMBERED = re.compile(r'\s*+(?:# )?[0-9]++:\s*+(?:"(?:[^"\\]++|\\.)*+"|[-+.\w]++)\s*+')
_BLANK = re.compile(r"[\s;]*+(?:#.*)?\s*+")


def packet_text(packet: TracePacket) -> str:
    """Return a packet in text form."""
    return f"packet {{\n{format_text(packet, 2)}}}\n"


def parse_packets(
    lines: Iterable[str], name: str, unknown: Counter[str] | None = None
) -> Iterator[TracePacket]:
    """Parse the packets of a text.

    Args:
        lines: The lines of the text, with their line ends.
        name: The name of the file, for error messages.
        unknown: Counts the fields that are left out.

    Raises:
        TextFormatError: The text is malformed; the message names the lines.
    """
    scanner = _Scanner(name)
    for line in lines:
        if _NUMBERED.fullmatch(line) is None:
            yield from scanner.feed(line)
        else:
            yield from scanner.feed("\n")
            if unknown is not None:
                unknown["fields known by number only"] += 1
    scanner.end()


class _Scanner:
    """Finds the start and the end of each packet, and passes its text to the parser."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._line = 0
        self._head = ""
        self._body = StringIO()
        self._start = 1
        self._size = 0
        self._depth = 0

    def feed(self, line: str) -> Iterator[TracePacket]:
        """Scan the next line."""
        self._line += 1
        at = 0
        for token in _TOKEN.finditer(line):
            if token[0] == "{":
                if not self._depth:
                    self._begin(line[at : token.start()])
                    at = token.end()
                self._depth += 1
            elif token[0] == "}":
                self._depth -= 1
                if not self._depth:
                    self._body.write(line[at : token.start()])
                    at = token.end()
                    yield _packet(self._body.getvalue(), self._name, self._start)
        self._keep(line[at:])

    def _begin(self, text: str) -> None:
        head = self._head + text
        if _HEAD.fullmatch(head) is None:
            raise TextFormatError(_complaint(self._name, self._line, head))
        self._head, self._body, self._size, self._start = "", StringIO(), 0, self._line

    def _keep(self, rest: str) -> None:
        """Store the rest of a line: a part of a packet, or text before the next packet."""
        if self._depth > 0:
            self._body.write(rest)
            self._size += len(rest)
        elif self._depth < 0 or _BLANK.fullmatch(rest) is None:
            self._head += rest.partition("#")[0]
        if self._depth < 0 or self._size > _MAX_PACKET_CHARS or len(self._head) > _MAX_HEAD_CHARS:
            self._give_up()

    def end(self) -> None:
        """Check that no packet is open. Call after the last line."""
        if self._depth or self._head.strip():
            self._give_up()

    def _give_up(self) -> None:
        raise TextFormatError(
            f"{self._name}:{self._start}: a packet that doesn't end, or a brace too many\n"
        )


def _complaint(name: str, number: int, head: str) -> str:
    found = head.strip()[:40] or "{"
    return (
        f"{name}:{number}: a trace is a list of `packet {{ … }}`, and this is {found!r}. "
        "Is it a config, or another message?\n"
    )


def _packet(body: str, name: str, line: int) -> TracePacket:
    try:
        return parse_text(body, TracePacket, name)
    except TextFormatError:
        # Parse the text again, with an empty line for each line of the file before it: then the
        # error message has the file's line numbers.
        return parse_text("\n" * (line - 1) + body, TracePacket, name)
