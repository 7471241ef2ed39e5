"""Ids of tracks and flows that are equal in each conversion of the same trace."""

from __future__ import annotations

from hashlib import blake2b


def uuid_of(*parts: str | int) -> int:
    """Return a hash of the parts as a 63-bit id, never 0."""
    text = "\0".join(map(str, parts)).encode(errors="replace")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little") >> 1 or 1
