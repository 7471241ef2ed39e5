from __future__ import annotations

import pytest

from stretto.base.errors import DecodeError
from stretto.protozero.filter.bytecode import checksum, decode_words, encode_words


def test_checksum_is_fnv_1a() -> None:
    """Low halves of published test vectors of FNV-1a-64: dd120e790c2512af is that of `foob`."""
    assert checksum([]) == 0x84222325
    assert checksum([int.from_bytes(b"foob", "little")]) == 0x0C2512AF
    assert checksum([1]) != checksum([1, 0])


def test_words_are_varints_and_the_checksum() -> None:
    data = encode_words([9, 300, 0])
    assert data.startswith(b"\x09\xac\x02\x00")
    assert decode_words(data) == [9, 300, 0]


def test_no_words() -> None:
    assert decode_words(encode_words([])) == []


def test_words_are_cut_to_32_bits() -> None:
    good = encode_words([5])
    assert decode_words(b"\x85\x80\x80\x80\x10" + good[1:]) == [5]


@pytest.mark.parametrize("data", [b"", b"\x01", encode_words([1])[:-1], b"\x80"])
def test_damage_is_noticed(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_words(data)
