from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stretto.base.errors import ConfigError, DecodeError
from stretto.protos.trace import TracePacket, TrackEvent
from stretto.protozero import wire
from tests.support.generated import load, module_of

SAMPLES = Path(__file__).parent
sample: Any = load(module_of(SAMPLES / "sample.proto", "stretto_sample_decoder")[1])
Everything: Any = sample.Everything
Inner: Any = sample.Everything.Inner


class TestSingularFields:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("a_int32", -7), ("a_int64", -(1 << 63)), ("a_uint32", (1 << 32) - 1)),
            *(("a_uint64", (1 << 64) - 1), ("a_sint32", -(1 << 31)), ("a_sint64", -(1 << 63))),
            *(("a_fixed32", (1 << 32) - 1), ("a_fixed64", (1 << 64) - 1)),
            *(("a_sfixed32", -1), ("a_sfixed64", -1), ("a_float", 0.5), ("a_double", -0.1)),
            *(("a_bool", False), ("a_string", "é"), ("color", -1), ("shape", 16)),
        ],
    )
    def test_singular_values_are_decoded(self, name: str, value: object) -> None:
        decoder = Everything.Decoder(Everything(**{name: value}).encode())
        assert getattr(decoder, name) == value
        assert type(getattr(decoder, name)) is type(value)
        assert name in decoder
        assert decoder.bytes_left == 0

    def test_bytes_are_views_of_the_input(self) -> None:
        data = bytearray(Everything(a_bytes=b"abc").encode())
        view = Everything.Decoder(data).a_bytes
        assert bytes(view) == b"abc"
        data[-1] = ord("x")
        assert bytes(view) == b"abx"

    def test_unset_fields_have_their_defaults(self) -> None:
        decoder = Everything.Decoder(b"")
        assert decoder.a_int32 == -5
        assert decoder.a_string == 'two words, "quoted" \\ é'
        assert decoder.color == -1
        assert decoder.inner is None
        assert decoder.strings == []
        assert decoder.numbers == {}
        assert "a_int32" not in decoder

    def test_last_value_of_a_field_is_used(self) -> None:
        """A decoder keeps the last value of a message field; a value class merges all values."""
        first, second = Everything(a_int32=1, inner=Inner(value=1)), Everything(inner=Inner())
        decoder = Everything.Decoder(first.encode() + wire.varint_field(1, 2) + second.encode())
        assert decoder.a_int32 == 2
        assert "value" not in decoder.inner

    def test_integers_are_truncated_to_the_width_of_their_type(self) -> None:
        assert Everything.Decoder(wire.varint_field(4, (1 << 40) + 6)).a_uint32 == 6
        assert Everything.Decoder(wire.varint_field(1, (1 << 40) - 1)).a_int32 == -1
        assert Everything.Decoder(wire.varint_field(17, 1 << 40)).a_bool is True

    def test_field_of_a_wrong_wire_type_is_empty(self) -> None:
        assert Everything.Decoder(wire.bytes_field(1, b"abc")).a_int32 == 0
        assert Everything.Decoder(wire.varint_field(18, 5)).a_string == ""
        assert list(Everything.Decoder(wire.varint_field(22, 5)).inner) == []

    def test_reserved_names_have_an_underscore(self) -> None:
        decoder = Everything.Decoder(Everything(from_=1, self_=2, encode_=True).encode())
        assert (decoder.from_, decoder.self_, decoder.encode_) == (1, 2, True)
        assert "from_" in decoder


class TestRepeatedFields:
    def test_packed_and_unpacked_elements_are_both_decoded(self) -> None:
        values = wire.varint_field(23, 1) + wire.bytes_field(23, b"\x02\x03")
        assert Everything.Decoder(values).many == [1, 2, 3]
        for name, numbers in (
            ("packed_sint64", [0, -1, 1 << 62]),
            ("packed_doubles", [0.5, -1e300]),
            ("packed_colors", [-1, 1]),
        ):
            message = Everything(**{name: numbers})
            assert getattr(Everything.Decoder(message.encode()), name) == numbers

    def test_repeated_strings_and_messages_are_decoded(self) -> None:
        message = Everything(strings=["a", ""], inners=[Inner(value=1), Inner()])
        decoder = Everything.Decoder(message.encode())
        assert decoder.strings == ["a", ""]
        assert [inner.value for inner in decoder.inners] == [1, 0]

    def test_truncated_packed_element_is_an_error_when_read(self) -> None:
        decoder = Everything.Decoder(wire.bytes_field(26, b"1234567") + wire.varint_field(1, 3))
        assert decoder.a_int32 == 3
        with pytest.raises(DecodeError, match="cut"):
            decoder.packed_doubles  # noqa: B018

    def test_maps_are_decoded(self) -> None:
        message = Everything(
            numbers={"a": 1}, messages={-1: Inner(value=2)}, colors={1: -1}, blobs={True: b"x"}
        )
        decoder = Everything.Decoder(message.encode())
        assert decoder.numbers == {"a": 1}
        assert decoder.messages[-1].value == 2
        assert decoder.colors == {1: -1}
        assert bytes(decoder.blobs[True]) == b"x"

    def test_map_entries_may_lack_key_or_value(self) -> None:
        empty = wire.bytes_field(32, b"") + wire.bytes_field(33, b"")
        decoder = Everything.Decoder(empty)
        assert decoder.numbers == {"": 0}
        assert decoder.messages[0].value == 0


class TestFieldAccess:
    def test_fields_are_accessible_by_number(self) -> None:
        decoder = TracePacket.Decoder(TracePacket(timestamp=7).encode())
        assert decoder[8].as_uint64() == 7
        assert decoder[11] is None
        assert 8 in decoder
        assert 11 not in decoder

    def test_unknown_fields_are_accessible_by_number(self) -> None:
        decoder = TracePacket.Decoder(wire.varint_field(5000, 7))
        assert decoder[5000].as_uint64() == 7
        assert [field.number for field in decoder] == [5000]

    def test_nested_messages_are_decoders(self) -> None:
        packet = TracePacket(track_event=TrackEvent(name="frame", flow_ids=[1, 2]))
        decoder = TracePacket.Decoder(packet.encode())
        event = decoder.track_event
        assert event is not None
        assert event.name == "frame"
        assert event.flow_ids == [1, 2]

    def test_unknown_field_names_are_errors(self) -> None:
        decoder = TracePacket.Decoder(b"")
        with pytest.raises(ConfigError, match="did you mean 'timestamp'"):
            assert "timestmp" in decoder
        with pytest.raises(AttributeError):
            decoder.timestmp  # type: ignore[attr-defined]  # noqa: B018

    def test_repr_shows_the_present_fields(self) -> None:
        decoder = TracePacket.Decoder(TracePacket(timestamp=7).encode())
        assert repr(decoder) == "<TracePacket.Decoder with the fields 8>"
        assert TracePacket.Decoder.__qualname__ == "TracePacket.Decoder"


class TestMalformedInput:
    @pytest.mark.parametrize("tail", ["08", "0880", "1205 61", "00", "0b", "0d00"])
    def test_malformed_data_ends_decoding(self, tail: str) -> None:
        data = wire.varint_field(8, 7) + bytes.fromhex(tail)
        decoder = TracePacket.Decoder(data)
        assert decoder.timestamp == 7
        assert decoder.bytes_left == len(bytes.fromhex(tail))
