"""A trace in the text form of its messages, packet by packet.

    packet {
      timestamp: 5
      track_event { type: TYPE_INSTANT  name: "x" }
    }
    packet { … }

Only one packet is in memory at a time; the dialect is that of `stretto.protozero.text_format`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stretto.protos.trace import TracePacket
from stretto.protozero.text_format import TextFormatError, format_text, parse_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MAX_PACKET_CHARS = 64 << 20
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"?|#.*|[{}]')
_HEAD = re.compile(r"\s*;?\s*packet\s*:?\s*")
_BLANK = re.compile(r"[\s;]*(?:#.*)?\s*")


def packet_text(packet: TracePacket) -> str:
    """A packet's text."""
    return f"packet {{\n{format_text(packet, 2)}}}\n"


def parse_packets(lines: Iterable[str], name: str) -> Iterator[TracePacket]:
    """The packets of a text.

    Args:
        lines: Of the text, each with its end.
        name: Of the file, for errors.

    Raises:
        TextFormatError: With the places in the text that are wrong.
    """
    head, depth, body, start, size = "", 0, [""], 1, 0
    for number, line in enumerate(lines, 1):
        at = 0
        for token in _TOKEN.finditer(line):
            mark = token[0]
            if mark == "{" and not depth:
                head += line[at : token.start()]
                if _HEAD.fullmatch(head) is None:
                    raise TextFormatError(_complaint(name, number, head))
                depth, at, body, start, size = 1, token.end(), [], number, 0
            elif mark == "{":
                depth += 1
            elif mark == "}" and depth == 1:
                body.append(line[at : token.start()])
                yield _packet("".join(body), name, start)
                head, depth, at = "", 0, token.end()
            elif mark == "}":
                depth -= 1
        rest = line[at:]
        if depth > 0:
            body.append(rest)
            size += len(rest)
        elif depth < 0 or _BLANK.fullmatch(rest) is None:
            head += rest.partition("#")[0]
        if size > _MAX_PACKET_CHARS or len(head) > 1000:
            raise TextFormatError(
                f"{name}:{start}: a packet that doesn't end; a brace is missing?\n"
            )
    if depth or head.strip():
        raise TextFormatError(f"{name}:{start}: a packet that doesn't end: where is its brace?\n")


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
