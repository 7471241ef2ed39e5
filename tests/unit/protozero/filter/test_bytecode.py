from __future__ import annotations

import pytest

from stretto.base.errors import DecodeError
from stretto.protozero.filter.bytecode import checksum, encode_words
from tests.support.filter_words import decode_words


def test_checksum_is_fnv_1a() -> None:
    """The checksum is the low half of FNV-1a-64, whose published value for `foob` is used here."""
    assert checksum([]) == 0x84222325
    assert checksum([int.from_bytes(b"foob", "little")]) == 0x0C2512AF
    assert checksum([1]) != checksum([1, 0])


def test_words_are_encoded_as_varints_followed_by_the_checksum() -> None:
    data = encode_words([9, 300, 0])
    assert data.startswith(b"\x09\xac\x02\x00")
    assert decode_words(data) == [9, 300, 0]


def test_empty_list_of_words_is_encoded_and_decoded() -> None:
    assert decode_words(encode_words([])) == []


def test_decoded_words_are_truncated_to_32_bits() -> None:
    good = encode_words([5])
    assert decode_words(b"\x85\x80\x80\x80\x10" + good[1:]) == [5]


@pytest.mark.parametrize("data", [b"", b"\x01", encode_words([1])[:-1], b"\x80"])
def test_damaged_bytecode_is_an_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_words(data)
