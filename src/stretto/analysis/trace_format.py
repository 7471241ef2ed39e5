"""Formats of traces, told from the name of a file or, better, from its first bytes."""

from __future__ import annotations

import re

from stretto.analysis.fxt.format import BIG_ENDIAN_MAGIC_BYTES, MAGIC_BYTES

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
_PACKETS_OBJECT = re.compile(rb'\s*\{\s*"packet"\s*:')
_PACKETS_ARRAY = re.compile(rb'\s*\{\s*"packet"\s*:\s*\[')
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


def is_packet_json(start: bytes) -> bool:
    """Return whether a file that begins like this has the JSON form of Perfetto's messages."""
    return _PACKETS_ARRAY.match(start) is not None


def is_chrome_json(start: bytes) -> bool:
    """Whether JSON that begins like this can be Chrome's: an array, or an object.

    The events of an object may come after members of any length. Only JSON of packets begins with
    `packet`.
    """
    return _PACKETS_OBJECT.match(start) is None
