r"""A trace in the text form of its messages, packet by packet.

    packet {
      timestamp: 5
      track_event { type: TYPE_INSTANT  name: "x" }
    }
    packet { … }

Only one packet is in memory at a time; the dialect is that of `stretto.protozero.text_format`.
Traceconv writes fields that it doesn't know by their numbers (`124: "\010\001"`), and we do in a
comment. Their types don't show, so they can't be read back: such lines are left out.
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
"""Of a packet of 64 MiB, the largest that is read of a trace, a byte takes four in a string."""
_MAX_HEAD_CHARS = 1000
# What may be long repeats without a way back (`++`, `*+`): it would take memory, or time.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|#.*|[{}]')
_HEAD = re.compile(r"\s*+;?\s*+packet\s*+:?\s*+")
_NUMBERED = re.compile(r'\s*+(?:# )?[0-9]++:\s*+(?:"(?:[^"\\]++|\\.)*+"|[-+.\w]++)\s*+')
_BLANK = re.compile(r"[\s;]*+(?:#.*)?\s*+")


def packet_text(packet: TracePacket) -> str:
    """A packet's text."""
    return f"packet {{\n{format_text(packet, 2)}}}\n"


def parse_packets(
    lines: Iterable[str], name: str, unknown: Counter[str] | None = None
) -> Iterator[TracePacket]:
    """The packets of a text.

    Args:
        lines: Of the text, each with its end.
        name: Of the file, for errors.
        unknown: Counts the fields that are left out.

    Raises:
        TextFormatError: With the places in the text that are wrong.
    """
    scanner = _Scanner(name)
    for line in lines:
        if _NUMBERED.fullmatch(line) is None:
            yield from scanner.feed(line)
        else:
            yield from scanner.feed("\n")
            if unknown is not None:
                unknown["fields that are known by number only"] += 1
    scanner.end()


class _Scanner:
    """Finds where packets begin and end; what is between is for the real parser."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._line = 0
        self._head = ""
        self._body = StringIO()
        self._start = 1
        self._size = 0
        self._depth = 0

    def feed(self, line: str) -> Iterator[TracePacket]:
        """Go over the next line."""
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
        """Keep what the last line holds of a packet, or of what stands before one."""
        if self._depth > 0:
            self._body.write(rest)
            self._size += len(rest)
        elif self._depth < 0 or _BLANK.fullmatch(rest) is None:
            self._head += rest.partition("#")[0]
        if self._depth < 0 or self._size > _MAX_PACKET_CHARS or len(self._head) > _MAX_HEAD_CHARS:
            self._give_up()

    def end(self) -> None:
        """There are no more lines."""
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
        # Once more with what stands before it, as empty lines: so that the places are right.
        return parse_text("\n" * (line - 1) + body, TracePacket, name)
