"""The codec passes all test vectors, which were written from the rules of the wire format."""

from __future__ import annotations

from typing import Any

import pytest

from fidl_support.vectors.case import Case
from fidl_support.vectors.groups import GROUPS, TYPES, handles_of
from stretto_fidl import codec
from stretto_fidl.codec import wire_error

HEADER_CODES = {"INVALID_HEADER", "MESSAGE_EXCEEDS_LIMIT", "UNKNOWN_MAGIC",
                "UNSUPPORTED_WIRE_FORMAT", "HANDLE_CLOSED"}  # fmt: skip
"""Error codes of headers, messages and handles, which have tests of their own."""


def cases(*ways: str, failing: bool) -> list[Any]:
    return [
        pytest.param(case, id=f"{group}-{case.name}")
        for group, found in GROUPS.items()
        for case in found
        if case.way in ways and (case.code is not None) is failing
    ]


@pytest.mark.parametrize("case", cases("both", "encode", failing=False))
def test_value_is_encoded_to_the_bytes_and_handles_of_the_vector(case: Case) -> None:
    with handles_of(case) as handles:
        data, dispositions = codec.encode(case.value(TYPES, *handles))
        assert data.hex(" ", 8) == case.data.hex(" ", 8)
        assert [disposition.handle for disposition in dispositions] == handles


@pytest.mark.parametrize("case", cases("both", "decode", failing=False))
def test_bytes_and_handles_of_the_vector_are_decoded_to_the_value(case: Case) -> None:
    with handles_of(case) as handles:
        value = codec.decode(getattr(TYPES, case.type), case.data, handles, wire=case.wire)
        assert value == case.value(TYPES, *handles)


@pytest.mark.parametrize("case", cases("encode", failing=True))
def test_value_that_cannot_be_encoded_raises_the_error_of_the_vector(case: Case) -> None:
    with handles_of(case) as handles, pytest.raises(codec.WireError) as raised:
        codec.encode(case.value(TYPES, *handles))
    assert raised.value.code == case.code


@pytest.mark.parametrize("case", cases("decode", failing=True))
def test_malformed_bytes_raise_the_error_of_the_vector_and_close_all_handles(case: Case) -> None:
    with handles_of(case) as handles:
        with pytest.raises(codec.WireError) as raised:
            codec.decode(getattr(TYPES, case.type), case.data, handles, wire=case.wire)
        assert raised.value.code == case.code
        assert not any(handle.is_open for handle in handles)
        if raised.value.offset is not None:
            assert 0 <= raised.value.offset <= len(case.data)


@pytest.mark.parametrize("case", cases("both", "decode", failing=False))
def test_each_truncated_message_is_refused(case: Case) -> None:
    if not case.data:
        return
    for end in {0, 1, len(case.data) // 2, len(case.data) - 8, len(case.data) - 1}:
        with handles_of(case) as handles, pytest.raises(codec.WireError):
            codec.decode(getattr(TYPES, case.type), case.data[:end], handles, wire=case.wire)


def test_at_least_600_vectors_have_unique_names() -> None:
    assert sum(len(found) for found in GROUPS.values()) >= 600
    for found in GROUPS.values():
        names = [(case.name, case.way, case.code is None) for case in found]
        assert len(names) == len(set(names))


def test_each_error_code_has_a_vector() -> None:
    seen = {case.code for found in GROUPS.values() for case in found} - {None}
    assert seen | HEADER_CODES == wire_error.CODES
