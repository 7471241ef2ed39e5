"""Builds FXT records word by word, as the specification defines them."""

from __future__ import annotations

import io
import struct

from stretto.analysis.fxt.record_reader import RecordReader
from stretto.analysis.fxt.records import Record

MAGIC = bytes.fromhex("1000044678541600")


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *(value & (1 << 64) - 1 for value in values))


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return data + bytes(-len(data) % 8)


def record(kind: int, high: int = 0, *parts: bytes) -> bytes:
    """Return an FXT record; `high` goes into its first word, above the type and the size."""
    body = b"".join(parts)
    return words(kind | (1 + len(body) // 8) << 4 | high << 16) + body


def string(index: int, value: str) -> bytes:
    return record(2, index | len(value.encode()) << 16, text(value))


def thread(index: int, process: int, number: int) -> bytes:
    return record(3, index, words(process, number))


def event(
    kind: int, time: int, thread: int, category: int, name: int, *rest: bytes, count: int = 0
) -> bytes:
    high = kind | count << 4 | thread << 8 | category << 16 | name << 32
    return record(4, high, words(time), *rest)


def argument(kind: int, name: int, high: int = 0, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return words(kind | (1 + len(body) // 8) << 4 | name << 16 | (high & 0xFFFFFFFF) << 32) + body


def read(*parts: bytes) -> tuple[list[Record], RecordReader]:
    reader = RecordReader(io.BytesIO(b"".join(parts)))
    return list(reader), reader
