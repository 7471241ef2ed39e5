"""Tests of whole FIDL messages: headers, limits, epitaphs, data at rest."""

from __future__ import annotations

import os

import pytest

from fidl_support.ir import library
from stretto_fidl import codec
from stretto_fidl.bindings import load
from stretto_fidl.codec import headers, wire_error
from stretto_fidl.codec.handle import Handle

TYPES = load(
    library(
        structs={"Bytes": "v vector<uint8>", "Handles": "v vector<handle>", "One": "x uint8"},
        unions={"Union": "1: x uint8"},
    )
)
HEADER = bytes.fromhex("05000000 0200 80 01 8877665544332211")


def failing(code: str):
    return pytest.raises(codec.WireError, match=code)


class TestMessageHeader:
    def test_message_header_is_equal_after_encoding_and_decoding(self) -> None:
        header = codec.TransactionHeader(5, 0x1122334455667788, flexible=True)
        assert header.encode() == HEADER
        assert codec.decode_header(HEADER) == header

    def test_strict_message_has_no_flexible_flag(self) -> None:
        assert codec.TransactionHeader(1, 1).encode()[6] == 0
        assert not codec.decode_header(HEADER[:6] + b"\0" + HEADER[7:]).flexible

    def test_header_flag_selects_the_wire_format(self) -> None:
        old = HEADER[:4] + b"\0\0" + HEADER[6:]
        assert codec.decode_header(old).wire == codec.V1
        with failing(wire_error.UNSUPPORTED_WIRE_FORMAT):
            codec.decode_header(old).encode()

    @pytest.mark.parametrize("magic", [0, 2, 255])
    def test_header_with_an_unknown_magic_number_is_refused(self, magic: int) -> None:
        with failing(wire_error.UNKNOWN_MAGIC):
            codec.decode_header(HEADER[:7] + bytes([magic]) + HEADER[8:])

    def test_header_without_an_ordinal_is_refused(self) -> None:
        with failing(wire_error.INVALID_HEADER):
            codec.decode_header(HEADER[:8] + bytes(8))

    @pytest.mark.parametrize("length", [0, 8, 15])
    def test_short_header_is_refused(self, length: int) -> None:
        with failing(wire_error.TOO_FEW_BYTES_IN_PRIMARY_OBJECT):
            codec.decode_header(HEADER[:length])

    def test_headers_with_different_ordinals_are_unequal(self) -> None:
        assert codec.TransactionHeader(1, 2) != codec.TransactionHeader(1, 3)
        assert codec.TransactionHeader(1, 2) != 5


class TestEpitaph:
    DATA = bytes(4) + bytes.fromhex("0200 00 01") + b"\xff" * 8 + bytes.fromhex("e8ffffff 00000000")

    def test_epitaph_status_is_equal_after_encoding_and_decoding(self) -> None:
        assert codec.encode_epitaph(-24) == self.DATA
        assert codec.decode_epitaph(self.DATA) == -24
        assert codec.decode_header(self.DATA).is_epitaph

    @pytest.mark.parametrize(
        "data",
        [
            DATA[:16],
            DATA[:-1],
            DATA + bytes(8),
            b"\1" + DATA[1:],
            DATA[:8] + bytes([1] * 8) + DATA[16:],
        ],
    )
    def test_malformed_epitaphs_are_refused(self, data: bytes) -> None:
        with failing(wire_error.INVALID_HEADER):
            codec.decode_epitaph(data)

    def test_epitaph_with_nonzero_padding_is_refused(self) -> None:
        with failing(wire_error.INVALID_PADDING_BYTE):
            codec.decode_epitaph(self.DATA[:-1] + b"\1")


class TestMessageBody:
    def test_payload_is_equal_after_encoding_and_decoding(self) -> None:
        header = codec.TransactionHeader(5, 7)
        message = codec.encode_message(header, TYPES.One(x=3))
        assert message.data == header.encode() + b"\3" + bytes(7)
        assert codec.decode_body(header, TYPES.One, message.data) == TYPES.One(x=3)

    def test_message_without_a_payload_consists_of_the_header(self) -> None:
        header = codec.TransactionHeader(5, 7)
        message = codec.encode_message(header)
        assert message.data == header.encode()
        assert codec.decode_body(header, None, message.data) is None

    def test_unexpected_payload_is_refused(self) -> None:
        with failing(wire_error.TOO_MANY_BYTES_IN_MESSAGE):
            codec.decode_body(codec.TransactionHeader(5, 7), None, HEADER + bytes(8))

    def test_unexpected_handle_is_closed(self) -> None:
        handle = Handle(os.open(os.devnull, os.O_RDONLY))
        with failing(wire_error.TOO_MANY_HANDLES_IN_MESSAGE):
            codec.decode_body(codec.TransactionHeader(5, 7), None, HEADER, [handle])
        assert not handle.is_open

    def test_header_selects_the_wire_format_of_the_body(self) -> None:
        old = HEADER[:4] + b"\0\0" + HEADER[6:]
        body = (1).to_bytes(8, "little") + bytes.fromhex("0800000000000000") + b"\xff" * 8 + b"\7"
        header = codec.decode_header(old)
        assert codec.decode_body(header, TYPES.Union, old + body + bytes(7)) == TYPES.Union(x=7)

    def test_message_above_the_byte_limit_is_refused(self) -> None:
        header = codec.TransactionHeader(5, 7)
        most = codec.MAX_BYTES - 32
        message = codec.encode_message(header, TYPES.Bytes(v=bytes(most)))
        assert len(message.data) == codec.MAX_BYTES
        with failing(wire_error.MESSAGE_EXCEEDS_LIMIT):
            codec.encode_message(header, TYPES.Bytes(v=bytes(most + 1)))

    def test_message_above_the_handle_limit_is_refused(self) -> None:
        header = codec.TransactionHeader(5, 7)
        with Handle(os.open(os.devnull, os.O_RDONLY)) as handle:
            message = codec.encode_message(header, TYPES.Handles(v=[handle] * codec.MAX_HANDLES))
            assert len(message.handles) == codec.MAX_HANDLES
            with failing(wire_error.MESSAGE_EXCEEDS_LIMIT):
                codec.encode_message(header, TYPES.Handles(v=[handle] * (codec.MAX_HANDLES + 1)))


class TestDataAtRest:
    def test_persisted_value_is_equal_after_decoding(self) -> None:
        data = codec.persist(TYPES.Union(x=7))
        assert data == bytes.fromhex("0001020000000000 0100000000000000 0700000000000100")
        assert codec.unpersist(TYPES.Union, data) == TYPES.Union(x=7)

    def test_data_at_rest_may_exceed_the_message_limit(self) -> None:
        value = TYPES.Bytes(v=bytes(1_000_000))
        assert codec.unpersist(TYPES.Bytes, codec.persist(value)) == value

    def test_data_at_rest_in_wire_format_v1_is_read(self) -> None:
        data = bytes.fromhex(
            "0001000000000000 0100000000000000 0800000000000000 ffffffffffffffff 07"
        )
        assert codec.unpersist(TYPES.Union, data + bytes(7)) == TYPES.Union(x=7)

    def test_value_with_handles_is_not_persisted(self) -> None:
        with Handle(os.open(os.devnull, os.O_RDONLY)) as handle:
            with failing(wire_error.TOO_MANY_HANDLES_IN_MESSAGE):
                codec.persist(TYPES.Handles(v=[handle]))
            assert handle.is_open

    @pytest.mark.parametrize(
        ("data", "code"),
        [
            ("", wire_error.TOO_FEW_BYTES_IN_PRIMARY_OBJECT),
            ("00010200000000", wire_error.TOO_FEW_BYTES_IN_PRIMARY_OBJECT),
            ("0002020000000000", wire_error.UNKNOWN_MAGIC),
            ("0101020000000000", wire_error.INVALID_HEADER),
            ("0001020000000001", wire_error.INVALID_HEADER),
        ],
    )
    def test_malformed_headers_of_data_at_rest_are_refused(self, data: str, code: str) -> None:
        with failing(code):
            headers.decode_at_rest_header(bytes.fromhex(data))
