"""Test vectors for the limit of 32 nested out-of-line objects."""

from __future__ import annotations

from fidl_support.vectors.case import (
    FF8,
    ZERO8,
    decode_fails,
    encode_fails,
    inline,
    ok,
    outside,
    pad,
    u64,
)
from fidl_support.vectors.structs import chain

DEEP = "EXCEEDED_MAX_OUT_OF_LINE_DEPTH"


def _texts(t, length: int, text: str | None):
    made = t.ChainText(text=text)
    for _ in range(length):
        made = t.ChainText(next=made)
    return made


def _chain_text(length: int, text: bytes) -> bytes:
    return (FF8 + ZERO8 + ZERO8) * length + ZERO8 + u64(len(text)) + FF8 + pad(text)


def _bytes(t, length: int, data: bytes):
    made = t.ChainBytes(data=data)
    for _ in range(length):
        made = t.ChainBytes(next=made)
    return made


def _empty_tables(t, length: int):
    made = t.ChainEmptyTable(t=t.EmptyTable())
    for _ in range(length):
        made = t.ChainEmptyTable(next=made, t=t.EmptyTable())
    return made


def _chain_empty_table(length: int) -> bytes:
    table = ZERO8 + FF8
    return (FF8 + table) * length + ZERO8 + table


def _unions(t, length: int, last=None):
    made = last or t.Union(a=7)
    for _ in range(length):
        made = t.Union(u=made)
    return t.OneUnion(u=made)


def _chain_union(length: int, last: bytes = u64(1) + inline(b"\7")) -> bytes:
    ends = [len(last) + 16 * (length - each - 1) for each in range(length)]
    return b"".join(u64(6) + outside(end) for end in ends) + last


def _tables(t, length: int):
    made = t.ChainTable()
    for _ in range(length):
        made = t.ChainTable(t=made)
    return t.TableChain(t=made)


def _chain_table(length: int) -> bytes:
    """Return the bytes of nested tables.

    Each table adds two to the depth: one for the vector of its envelopes, one for the content.
    """
    data = u64(0) + FF8
    for _ in range(length):
        data = u64(2) + FF8 + ZERO8 + outside(len(data)) + data
    return data


CASES = [
    *(ok(f"boxes_{n}", "Chain", FF8 * n + ZERO8, lambda t, n=n: chain(t, n)) for n in (30, 31, 32)),
    *(decode_fails(f"boxes_{n}", "Chain", FF8 * n + ZERO8, DEEP) for n in (33, 34, 1000)),
    *(encode_fails(f"boxes_{n}", "Chain", lambda t, n=n: chain(t, n), DEEP) for n in (33, 200)),
    ok("text_at_32", "ChainText", _chain_text(31, b"X"), lambda t: _texts(t, 31, "X")),
    decode_fails("text_at_33", "ChainText", _chain_text(32, b"X"), DEEP),
    encode_fails("text_at_33", "ChainText", lambda t: _texts(t, 32, "X"), DEEP),
    decode_fails("empty_text_at_33", "ChainText", _chain_text(32, b""), DEEP),
    encode_fails("empty_text_at_33", "ChainText", lambda t: _texts(t, 32, ""), DEEP),
    ok(
        "no_text_at_33",
        "ChainText",
        (FF8 + ZERO8 + ZERO8) * 32 + ZERO8 * 3,
        lambda t: _texts(t, 32, None),
    ),
    ok(
        "vector_of_boxes_32",
        "Chains",
        u64(1) + FF8 + FF8 * 31 + ZERO8,
        lambda t: t.Chains(v=[chain(t, 31)]),
    ),
    decode_fails("vector_of_boxes_33", "Chains", u64(1) + FF8 + FF8 * 32 + ZERO8, DEEP),
    encode_fails("vector_of_boxes_33", "Chains", lambda t: t.Chains(v=[chain(t, 32)]), DEEP),
    ok("unions_32", "OneUnion", _chain_union(32), lambda t: _unions(t, 32)),
    decode_fails("unions_33", "OneUnion", _chain_union(33), DEEP),
    encode_fails("unions_33", "OneUnion", lambda t: _unions(t, 33), DEEP),
    ok("tables_15", "TableChain", _chain_table(15), lambda t: _tables(t, 15)),
    decode_fails("tables_16", "TableChain", _chain_table(16), DEEP),
    encode_fails("tables_16", "TableChain", lambda t: _tables(t, 16), DEEP),
    ok(
        "table_of_boxes_32",
        "TableChain",
        u64(1) + FF8 + outside(248) + FF8 * 30 + ZERO8,
        lambda t: t.TableChain(t=t.ChainTable(c=chain(t, 30))),
    ),
    decode_fails(
        "table_of_boxes_33", "TableChain", u64(1) + FF8 + outside(256) + FF8 * 31 + ZERO8, DEEP
    ),
    encode_fails(
        "table_of_boxes_33",
        "TableChain",
        lambda t: t.TableChain(t=t.ChainTable(c=chain(t, 31))),
        DEEP,
    ),
    ok(
        "unknown_at_32",
        "OneUnion",
        _chain_union(31, u64(99) + outside(8) + bytes(8)),
        lambda t: _unions(t, 31, t.Union._make(99, None)),
        way="decode",
    ),
    decode_fails(
        "unknown_at_33", "OneUnion", _chain_union(32, u64(99) + outside(8) + bytes(8)), DEEP
    ),
    ok("bytes_at_32", "ChainBytes", _chain_text(31, b"X"), lambda t: _bytes(t, 31, b"X")),
    decode_fails("bytes_at_33", "ChainBytes", _chain_text(32, b"X"), DEEP),
    encode_fails("bytes_at_33", "ChainBytes", lambda t: _bytes(t, 32, b"X"), DEEP),
    decode_fails("no_bytes_at_33", "ChainBytes", _chain_text(32, b""), DEEP),
    encode_fails("no_bytes_at_33", "ChainBytes", lambda t: _bytes(t, 32, b""), DEEP),
    ok(
        "empty_table_at_32",
        "ChainEmptyTable",
        _chain_empty_table(31),
        lambda t: _empty_tables(t, 31),
    ),
    decode_fails("empty_table_at_33", "ChainEmptyTable", _chain_empty_table(32), DEEP),
    encode_fails("empty_table_at_33", "ChainEmptyTable", lambda t: _empty_tables(t, 32), DEEP),
]
