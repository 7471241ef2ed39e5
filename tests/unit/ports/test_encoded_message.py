"""Encoded messages are split into parts; fields are extracted from encoded messages."""

from __future__ import annotations

import pytest

from stretto.base.errors import DecodeError
from stretto.ports.encoded_message import field_bytes, split_message, without_field
from stretto.protos.config import DataSourceDescriptor
from stretto.protos.trace import TracingServiceState


def state(*name_sizes: int) -> TracingServiceState:
    sources = [
        TracingServiceState.DataSource(
            ds_descriptor=DataSourceDescriptor(name="n" * size), producer_id=1
        )
        for size in name_sizes
    ]
    return TracingServiceState(num_sessions=3, data_sources=sources, tracing_service_version="v")


@pytest.mark.parametrize("limit", [20, 50, 10_000])
def test_joined_parts_equal_the_message(limit: int) -> None:
    whole = state(*range(10))
    parts = list(split_message(whole.encode(), limit))
    assert all(0 < len(part) <= limit for part in parts)
    assert TracingServiceState.decode(b"".join(parts)) == whole


def test_parts_are_filled_up_to_the_limit() -> None:
    assert len(list(split_message(state(*[5] * 8).encode(), 10_000))) == 1


def test_fields_larger_than_the_limit_are_omitted() -> None:
    parts = list(split_message(state(5, 100, 6).encode(), 50))
    assert TracingServiceState.decode(b"".join(parts)) == state(5, 6)


def test_empty_message_is_one_empty_part() -> None:
    assert list(split_message(b"", 50)) == [b""]


def test_without_field_removes_all_occurrences_of_the_field() -> None:
    left = without_field(state(1, 2, 3).encode(), 2)
    assert TracingServiceState.decode(left) == state()


def test_field_bytes_joins_all_occurrences_of_the_field() -> None:
    encoded = b"\x08\x05" + b"\x0a\x02ab" + b"\x12\x01x" + b"\x0a\x01c"
    assert field_bytes(encoded, 1) == b"abc"
    assert field_bytes(encoded, 3) == b""
    with pytest.raises(DecodeError):
        field_bytes(b"\x0a\x05ab", 1)
