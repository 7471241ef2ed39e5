"""Ids for tracks and flows, the same ones whenever a trace is converted."""

from __future__ import annotations

from hashlib import blake2b


def uuid_of(*parts: str | int) -> int:
    """An id of 63 bits for what these name, never 0."""
    text = "\0".join(map(str, parts)).encode(errors="replace")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little") >> 1 or 1
