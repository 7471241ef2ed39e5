from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from stretto.base.errors import DecodeError
from stretto.protozero import decoder_pure, wire
from stretto.protozero.decoder import MAX_FIELD_NUMBER

native = pytest.importorskip("stretto._native")

Decoder: Any = None


@pytest.fixture(autouse=True, params=["native", "pure"])
def implementation(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run each test with the native and the pure decoder, which have the same API."""
    global Decoder
    Decoder = (native if request.param == "native" else decoder_pure).Decoder
    yield request.param
    Decoder = None


def only(data: bytes) -> Any:
    (field,) = Decoder(data)
    return field


class TestFieldIteration:
    def test_fields_are_decoded_in_wire_order(self) -> None:
        data = wire.varint_field(3, 1) + wire.bytes_field(1, b"x") + wire.varint_field(3, 2)
        decoder = Decoder(data)
        assert [(f.number, f.wire_type, f.value) for f in decoder] == [
            (3, 0, 1),
            (1, 2, 0),
            (3, 0, 2),
        ]
        assert decoder.bytes_left == 0
        assert decoder.error is None

    def test_values_are_views_of_the_input(self) -> None:
        data = bytearray(wire.bytes_field(1, b"abc"))
        field = only(data)
        data[2] = ord("z")
        assert field.as_string() == "zbc"

    def test_any_object_with_the_buffer_protocol_is_decoded(self) -> None:
        data = wire.varint_field(1, 5)
        for buffer in (data, bytearray(data), memoryview(data), memoryview(data).cast("H")[:1]):
            assert next(Decoder(buffer)).value == 5

    @pytest.mark.parametrize(
        "tail",
        ["00", "0001", "08", "08ff", "0a", "0a0561", "0d00", "0900", "0b", "0c", "0e00", "0f"],
    )
    def test_decoding_stops_before_a_malformed_field(self, tail: str) -> None:
        broken = bytes.fromhex(tail)
        decoder = Decoder(wire.varint_field(1, 5) + broken)
        assert [f.number for f in decoder] == [1]
        assert decoder.bytes_left == len(broken)
        assert isinstance(decoder.error, DecodeError)
        assert list(decoder) == []
        assert decoder.bytes_left == len(broken)

    def test_complete_fields_of_truncated_input_are_decoded(self) -> None:
        data = wire.varint_field(1, -1) + wire.bytes_field(2, b"abc") + b"\x19" + bytes(8)
        whole = {0, 11, 16, 25}
        for size in range(len(data) + 1):
            decoder = Decoder(data[:size])
            assert len(list(decoder)) == sum(end <= size for end in whole - {0})
            assert (decoder.bytes_left == 0) == (size in whole)

    def test_error_contains_field_and_offset(self) -> None:
        decoder = Decoder(wire.varint_field(1, 5) + b"\x0b")
        next(decoder)
        assert list(decoder) == []
        assert "wire type 3 of field 1 at offset 2" in str(decoder.error)

    def test_varints_of_more_than_ten_bytes_are_malformed(self) -> None:
        assert only(b"\x08" + b"\xff" * 9 + b"\x01").value == 2**64 - 1
        assert only(b"\x08" + b"\xff" * 9 + b"\x7f").value == 2**64 - 1
        assert only(b"\x08" + b"\x80" * 9 + b"\x00").value == 0
        assert list(Decoder(b"\x08" + b"\x80" * 10 + b"\x00")) == []

    def test_input_that_is_no_buffer_is_refused(self) -> None:
        for wrong in (5, "text", None):
            with pytest.raises(TypeError):
                Decoder(wrong)

    def test_large_field_numbers_are_skipped(self) -> None:
        data = wire.varint_field(MAX_FIELD_NUMBER + 1, 1) + wire.varint_field(MAX_FIELD_NUMBER, 2)
        decoder = Decoder(data)
        assert [f.number for f in decoder] == [MAX_FIELD_NUMBER]
        assert decoder.bytes_left == 0

    def test_large_fields_are_skipped(self) -> None:
        data = wire.bytes_field(1, bytes(wire.MAX_SIZE + 1)) + wire.bytes_field(2, b"123")
        assert [f.number for f in Decoder(data)] == [2]

    def test_find_returns_the_first_field_with_a_given_number(self) -> None:
        decoder = Decoder(
            wire.varint_field(2, 1) + wire.varint_field(1, 2) + wire.varint_field(1, 3)
        )
        found = decoder.find(1)
        assert found is not None
        assert found.value == 2
        assert decoder.find(9) is None
        assert len(list(decoder)) == 3


class TestValueConversions:
    def test_negative_integers_are_sign_extended(self) -> None:
        field = only(wire.varint_field(1, -2))
        assert (field.as_int64(), field.as_int32()) == (-2, -2)
        assert (field.as_uint64(), field.as_uint32()) == (2**64 - 2, 2**32 - 2)

    def test_conversions_to_32_bits_truncate(self) -> None:
        field = only(wire.varint_field(1, 2**32 + 3))
        assert (field.as_uint32(), field.as_int32(), field.as_sint32()) == (3, 3, -2)

    def test_bool_is_true_for_every_value_except_zero(self) -> None:
        assert only(wire.varint_field(1, 2)).as_bool()
        assert not only(wire.varint_field(1, 0)).as_bool()

    def test_sint_values_are_zigzag_decoded(self) -> None:
        assert only(wire.varint_field(1, 5)).as_sint64() == -3

    def test_double_and_float_are_decoded(self) -> None:
        assert only(bytes.fromhex("09000000000000f83f")).as_double() == 1.5
        assert only(bytes.fromhex("0d0000c03f")).as_float() == 1.5

    def test_repr_shows_number_wire_type_and_value(self) -> None:
        assert repr(only(b"\x08\x05")) == "DecodedField(1, wire_type=0, 5)"
        assert repr(only(b"\x0a\x01x")) == "DecodedField(1, wire_type=2, b'x')"

    def test_fields_can_be_used_after_their_decoder_is_deleted(self) -> None:
        inner = wire.bytes_field(3, b"payload" * 100)
        for data in (bytes, bytearray):
            fields = [
                field
                for outer in Decoder(data(wire.bytes_field(1, inner) * 300))
                for field in outer.as_message()
            ]
            gc.collect()
            assert {field.as_string() for field in fields} == {"payload" * 100}
            assert fields[7].data.obj is not None
            assert fields[7].data[:7] == b"payload"

    def test_buffer_cannot_be_resized_while_fields_exist(self) -> None:
        data = bytearray(wire.bytes_field(1, b"abc"))
        field = only(data)
        with pytest.raises(BufferError):
            data.clear()
        del field
        gc.collect()
        data.clear()

    def test_nested_message_is_decoded(self) -> None:
        inner = only(wire.bytes_field(1, wire.varint_field(7, 8))).as_message()
        assert [(f.number, f.value) for f in inner] == [(7, 8)]

    def test_conversion_of_a_field_with_another_wire_type_gives_an_empty_value(self) -> None:
        number, text = only(wire.varint_field(1, 5)), only(wire.bytes_field(1, b"x"))
        assert (number.as_bytes(), number.as_string(), list(number.as_message())) == (b"", "", [])
        assert (text.as_uint64(), text.as_double(), text.as_bool()) == (0, 0.0, False)

    def test_invalid_utf8_is_kept_by_surrogateescape(self) -> None:
        text = only(wire.bytes_field(1, b"a\xff")).as_string()
        assert text.encode("utf-8", "surrogateescape") == b"a\xff"


class TestPackedFields:
    def test_packed_elements_are_decoded(self) -> None:
        field = only(wire.bytes_field(1, bytes.fromhex("01ac02")))
        assert list(field.packed_varints()) == [1, 300]
        fixed = only(wire.bytes_field(1, bytes(range(8))))
        assert list(fixed.packed_fixed32()) == [0x03020100, 0x07060504]
        assert list(fixed.packed_fixed64()) == [0x0706050403020100]
        assert list(only(wire.bytes_field(1, b"")).packed_varints()) == []

    def test_truncated_packed_element_is_an_error(self) -> None:
        elements = only(wire.bytes_field(1, b"\x01\x80")).packed_varints()
        assert next(elements) == 1
        with pytest.raises(DecodeError):
            next(elements)
        with pytest.raises(DecodeError):
            list(only(wire.bytes_field(1, bytes(5))).packed_fixed32())
