"""Ordinals in a trace are replaced by method names; all other content is unchanged."""

from __future__ import annotations

import zlib

import pytest

from stretto.base.errors import DecodeError
from stretto.protos.trace import TracePacket
from stretto.protozero import wire
from stretto_fidl.cli.ordinal_names import Symbolizer, method_names
from stretto_fidl.compiler import compile_sources

NAMES = {0x5F: "Echo"}


def message(*fields: tuple[int, bytes | int]) -> bytes:
    pieces = []
    for number, value in fields:
        encode = wire.varint_field if isinstance(value, int) else wire.bytes_field
        pieces.append(encode(number, value))  # type: ignore[arg-type]
    return b"".join(pieces)


def packet(name: bytes, unknown: bytes = b"") -> bytes:
    annotation = message((1, 7), (6, name))
    event = message((9, 1), (23, name), (4, annotation), (4, message((10, b"other"))))
    interned = message((2, message((1, 3), (2, name))), (29, message((1, 4), (2, name))))
    fixed = bytes([8 << 3 | 1]) + bytes(range(8)) + bytes([9 << 3 | 5]) + bytes(range(4))
    return message((8, 12345), (11, event), (12, interned), (3999, unknown or name)) + fixed


def test_ordinals_are_replaced_by_method_names() -> None:
    symbolizer = Symbolizer(NAMES)
    trace = message((1, packet(b"ordinal 0x5f")), (1, packet(b"plain")))
    named = symbolizer.symbolize(trace)
    expected = packet(b"Echo", b"ordinal 0x5f")
    assert named == message((1, expected), (1, packet(b"plain")))
    assert symbolizer.named == {0x5F}
    TracePacket.decode(expected)


@pytest.mark.parametrize("name", [b"ordinal 0x60", b"an ordinal 0x5f", b"ordinal 0x5f too"])
def test_only_texts_with_known_ordinals_are_replaced(name: bytes) -> None:
    symbolizer = Symbolizer(NAMES)
    trace = message((1, packet(name)))
    assert symbolizer.symbolize(trace) == trace
    assert symbolizer.unknown == ({0x60} if name == b"ordinal 0x60" else set())


def test_ordinals_in_compressed_packets_are_replaced() -> None:
    def trace(name: bytes) -> bytes:
        return message((1, message((11, message((23, name))))))

    packed = message((1, message((50, zlib.compress(trace(b"ordinal 0x5f"))))))
    named = TracePacket.decode(Symbolizer(NAMES).symbolize(packed)[2:])
    assert zlib.decompress(named.compressed_packets) == trace(b"Echo")
    without = message((1, message((50, zlib.compress(trace(b"plain"))))))
    assert Symbolizer(NAMES).symbolize(without) == without


@pytest.mark.parametrize("trace", [b"\x0a\x05abc", message((1, message((50, b"not deflated"))))])
def test_files_other_than_traces_are_refused(trace: bytes) -> None:
    with pytest.raises(DecodeError):
        Symbolizer(NAMES).symbolize(trace)


def test_methods_and_events_are_found_by_ordinal() -> None:
    text = "library a.b; closed protocol P { strict One(); strict -> Two(); };"
    ir = compile_sources({"a.fidl": text})
    (protocol,) = ir["protocol_declarations"]
    expected = {int(method["ordinal"]): method["name"] for method in protocol["methods"]}
    assert method_names([ir]) == expected
    assert sorted(expected.values()) == ["One", "Two"]
    ir["interface_declarations"] = ir.pop(
        "protocol_declarations"
    )  # Before 2020, compilers wrote protocols under this key.
    assert method_names([ir]) == expected
