from __future__ import annotations

import gc
import random
from types import ModuleType
from typing import Any

import pytest

from stretto.base.errors import LocalProtocolError
from stretto.protos.trace import TracePacket
from stretto.protozero import selector, tokenizer_pure, wire
from stretto.protozero.selector import select

native: Any = pytest.importorskip("stretto._native")

MARKER = bytes.fromhex("82477a76b28d42ba81dc33326d57a079")


@pytest.fixture(params=["native", "pure"])
def tokenizer(request: pytest.FixtureRequest) -> Any:
    """Return the native or the pure class, which have the same API and results."""
    chosen: ModuleType = native if request.param == "native" else tokenizer_pure
    return chosen.Tokenizer


def stream(*packets: bytes) -> bytes:
    return b"".join(wire.bytes_field(1, packet) for packet in packets)


class TestInputInPieces:
    def test_whole_packets_are_split(self, tokenizer: Any) -> None:
        found = tokenizer()
        assert list(found.append(stream(b"a", b"", b"c" * 300))) == [b"a", b"", b"c" * 300]
        assert (found.bytes_left, found.errors, found.bytes_skipped) == (0, 0, 0)

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 131])
    def test_packets_spread_over_pieces_are_joined(self, tokenizer: Any, size: int) -> None:
        packets = [bytes([n % 256]) * (n * 37 % 500) for n in range(60)]
        data = stream(*packets)
        found = tokenizer()
        got = [
            packet
            for at in range(0, len(data), size)
            for packet in found.append(memoryview(data)[at : at + size])
        ]
        assert got == packets
        assert list(found.end()) == []
        assert found.errors == 0

    def test_appended_buffer_is_not_referenced_after_reading(self, tokenizer: Any) -> None:
        piece = bytearray(stream(b"abc") + b"\x0a\x05de")
        found = tokenizer()
        assert list(found.append(piece)) == [b"abc"]
        piece.clear()
        assert found.bytes_left == 4
        assert list(found.append(b"fgh")) == [b"defgh"]

    def test_fields_that_are_no_packets_are_skipped(self, tokenizer: Any) -> None:
        data = wire.varint_field(3, 5) + wire.bytes_field(2, b"x") + b"\x0d1234" + stream(b"p")
        assert list(tokenizer().append(data)) == [b"p"]
        assert list(tokenizer(field=2).append(data)) == [b"x"]

    def test_count_returns_the_number_of_packets(self, tokenizer: Any) -> None:
        found = tokenizer()
        assert found.append(stream(*[b"x"] * 1000) + b"\x0a").count() == 1000
        assert found.append(b"\x00").count() == 1

    def test_callback_converts_each_packet(self, tokenizer: Any) -> None:
        assert list(tokenizer(make=len).append(stream(b"abc", b""))) == [3, 0]
        with pytest.raises(ZeroDivisionError):
            next(tokenizer(make=lambda _: 1 // 0).append(stream(b"x")))


class TestDamagedInput:
    def test_tokenizer_without_a_marker_ends_at_the_first_damage(self, tokenizer: Any) -> None:
        found = tokenizer()
        assert list(found.append(stream(b"a") + b"\x0f" + stream(b"b"))) == [b"a"]
        assert list(found.append(stream(b"c"))) == []
        assert found.errors == 1

    @pytest.mark.parametrize("size", [1, 5, 1000])
    def test_reading_continues_after_the_next_marker(self, tokenizer: Any, size: int) -> None:
        marked = wire.bytes_field(36, MARKER)
        data = stream(b"a", marked) + b"\x00garbage" + stream(b"lost", marked, b"b", b"c")
        found = tokenizer(marker=MARKER)
        got = [p for at in range(0, len(data), size) for p in found.append(data[at : at + size])]
        assert got == [b"a", marked, b"b", b"c"]
        assert found.errors == 1
        assert found.bytes_skipped == len(b"\x00garbage" + stream(b"lost", marked))

    def test_length_beyond_the_end_is_counted_as_an_error(self, tokenizer: Any) -> None:
        found = tokenizer(marker=MARKER)
        data = stream(b"a") + b"\x0a\xff\x7f" + stream(wire.bytes_field(36, MARKER), b"b")
        assert list(found.append(data)) == [b"a"]
        assert list(found.end()) == [b"b"]
        assert found.errors == 1

    def test_packet_above_the_maximum_size_is_an_error(self, tokenizer: Any) -> None:
        found = tokenizer(max_size=10)
        assert list(found.append(stream(b"x" * 10, b"x" * 11))) == [b"x" * 10]
        assert found.errors == 1
        hostile = b"\x0a" + wire.varint((64 << 20) + 1)
        assert list((found := tokenizer()).append(hostile)) == []
        assert found.errors == 1

    def test_randomly_damaged_data_does_not_hang(self, tokenizer: Any) -> None:
        rng = random.Random(3)
        marked = wire.bytes_field(36, MARKER)
        for _ in range(30):
            data = bytearray(stream(*[b"p" * rng.randrange(50), marked] * 20))
            for _ in range(5):
                data[rng.randrange(len(data))] = rng.randrange(256)
            found = tokenizer(marker=MARKER)
            got = [p for at in range(0, len(data), 64) for p in found.append(data[at : at + 64])]
            got += list(found.end())
            assert 1 <= len(got) <= 45


class TestNativeTokenizer:
    """Tests of behaviour that only the native tokenizer has."""

    def test_append_before_all_packets_are_read_is_an_error(self) -> None:
        found = native.Tokenizer().append(stream(b"a", b"b"))
        assert next(found) == b"a"
        with pytest.raises(LocalProtocolError, match="messages left"):
            found.append(b"")
        assert list(found.end()) == [b"b"]
        with pytest.raises(LocalProtocolError, match="ended"):
            found.append(b"")

    def test_callback_cannot_use_its_tokenizer(self) -> None:
        seen = []

        def make(_: bytes) -> None:
            for step in (lambda: next(found), lambda: found.append(b""), found.end, found.count):
                with pytest.raises(LocalProtocolError, match="in use"):
                    step()
                seen.append(step)

        found = native.Tokenizer(make=make)
        assert list(found.append(stream(b"x"))) == [None]
        assert len(seen) == 4

    def test_invalid_arguments_are_refused(self) -> None:
        for arguments in ({"make": 5}, {"marker": "x"}, {"field": "1"}):
            with pytest.raises(TypeError):
                native.Tokenizer(**arguments)
        for arguments in ({"field": 0}, {"max_size": -1}, {"max_size": 1 << 40}):
            with pytest.raises(ValueError, match="must be from"):
                native.Tokenizer(**arguments)

    def test_reference_cycle_of_a_tokenizer_and_its_callback_is_collected(self) -> None:
        class Maker:
            def __call__(self, data: bytes) -> bytes:
                return data

        def build() -> Any:
            import weakref

            maker = Maker()
            maker.tokenizer = native.Tokenizer(make=maker)  # type: ignore[attr-defined]
            return weakref.ref(maker)

        gone = build()
        gc.collect()
        assert gone() is None

    def test_callback_make_can_be_a_selector(self) -> None:
        assert selector.Selector is native.Selector
        rows = native.Tokenizer(select(TracePacket, "timestamp", "track_event.name"))
        packets = [TracePacket(timestamp=n).encode() for n in range(5)]
        assert list(rows.append(stream(*packets))) == [(n, None) for n in range(5)]
