from __future__ import annotations

import pytest

from stretto.base.errors import DecodeError
from stretto.protozero import wire


class TestVarintEncoding:
    @pytest.mark.parametrize(
        ("value", "encoded"),
        [
            (0, "00"),
            (127, "7f"),
            (128, "8001"),
            (300, "ac02"),
            (2**32 - 1, "ffffffff0f"),
            (2**64 - 1, "ffffffffffffffffff01"),
        ],
    )
    def test_varint_has_the_shortest_encoding(self, value: int, encoded: str) -> None:
        data = bytes.fromhex(encoded)
        assert wire.varint(value) == data
        assert wire.read_varint(data, 0, len(data)) == (value, len(data))

    @pytest.mark.parametrize("value", [-1, 2**64, "1"])
    def test_varint_of_another_value_is_an_error(self, value: int) -> None:
        pytest.importorskip("stretto._native")
        with pytest.raises((OverflowError, TypeError)):
            wire.varint(value)

    @pytest.mark.parametrize(
        ("value", "encoded"),
        [(0, "80808000"), (26, "9a808000"), (128, "80818000"), (wire.MAX_SIZE, "ffffff7f")],
    )
    def test_redundant_varint_has_four_bytes(self, value: int, encoded: str) -> None:
        data = bytes.fromhex(encoded)
        assert wire.redundant_varint(value) == data
        assert wire.read_varint(data, 0, 4) == (value, 4)

    def test_varint_is_read_within_the_given_start_and_end(self) -> None:
        assert wire.read_varint(b"\xff\x05\xff", 1, 2) == (5, 2)
        with pytest.raises(DecodeError, match="offset 2"):
            wire.read_varint(b"\xff\x05\xff\x01", 2, 3)

    @pytest.mark.parametrize("data", [b"", b"\x80", b"\x80" * 10, b"\x80" * 10 + b"\x01"])
    def test_unterminated_varint_is_an_error(self, data: bytes) -> None:
        with pytest.raises(DecodeError, match="offset 0"):
            wire.read_varint(data, 0, len(data))

    def test_varint_is_truncated_to_64_bits(self) -> None:
        assert wire.read_varint(b"\xff" * 9 + b"\x7f", 0, 10) == (2**64 - 1, 10)


class TestZigzagEncoding:
    @pytest.mark.parametrize(
        ("value", "mapped"),
        [(0, 0), (-1, 1), (1, 2), (-2, 3), (2**63 - 1, 2**64 - 2), (-(2**63), 2**64 - 1)],
    )
    def test_zigzag_is_encoded_and_decoded(self, value: int, mapped: int) -> None:
        assert wire.zigzag(value) == mapped
        assert wire.unzigzag(mapped) == value


class TestFieldEncoding:
    def test_tag_contains_number_and_wire_type(self) -> None:
        assert wire.tag(1, wire.VARINT) == b"\x08"
        assert wire.tag(900, wire.DELIMITED) == bytes.fromhex("a238")

    def test_tag_and_value_of_a_field_are_encoded(self) -> None:
        assert wire.varint_field(1, 150) == bytes.fromhex("089601")
        assert wire.varint_field(1, -1) == b"\x08" + b"\xff" * 9 + b"\x01"
        assert wire.bytes_field(2, b"abc") == b"\x12\x03abc"

    @pytest.mark.parametrize(
        ("encoded", "field"),
        [
            ("089601", (1, wire.VARINT, 150, 3)),
            ("0901000000000000 80", (1, wire.FIXED64, 1 << 63 | 1, 9)),
            ("0d01000080", (1, wire.FIXED32, 1 << 31 | 1, 5)),
            ("12036162 63ff", (2, wire.DELIMITED, 2, 5)),
            ("128380800061 6263", (2, wire.DELIMITED, 5, 8)),
            ("1200", (2, wire.DELIMITED, 2, 2)),
        ],
    )
    def test_field_of_each_wire_type_is_read(
        self, encoded: str, field: tuple[int, int, int, int]
    ) -> None:
        data = bytes.fromhex(encoded)
        assert wire.read_field(data, 0, len(data)) == field

    @pytest.mark.parametrize(
        ("encoded", "complaint"),
        [
            ("00 01", "field number 0"),
            ("08", "unterminated varint at offset 1"),
            ("0a", "unterminated varint at offset 1"),
            ("0a02 61", "field 1 at offset 0 reaches past the end"),
            ("0a ffffffffffffffffff01", "reaches past the end"),
            ("0d000000", "reaches past the end"),
            ("0900000000000000", "reaches past the end"),
            ("0b", "wire type 3 of field 1"),
            ("0c", "wire type 4"),
            ("0e", "wire type 6"),
            ("0f", "wire type 7"),
        ],
    )
    def test_malformed_field_is_an_error(self, encoded: str, complaint: str) -> None:
        data = bytes.fromhex(encoded)
        with pytest.raises(DecodeError, match=complaint):
            wire.read_field(data, 0, len(data))

    def test_packed_elements_are_read(self) -> None:
        data = bytes.fromhex("ac02 01000000 0200000000000000")
        assert wire.read_value(data, 0, 14, wire.VARINT) == (300, 2)
        assert wire.read_value(data, 2, 14, wire.FIXED32) == (1, 6)
        assert wire.read_value(data, 6, 14, wire.FIXED64) == (2, 14)
        with pytest.raises(DecodeError, match="offset 11"):
            wire.read_value(data, 11, 14, wire.FIXED32)
