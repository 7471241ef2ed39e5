"""Descriptors of data sources pass through the service unchanged, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.base.errors import DecodeError
from stretto.ports.data_source_descriptor import DescriptorHeader, without_details
from stretto.ports.service_state import decode_state, encoded_data_source, split_state
from stretto.protos.config import DataSourceDescriptor
from stretto.protos.trace import TracingServiceState
from stretto.protozero.wire import bytes_field
from tests.support.service_setup import Setup

UNKNOWN = bytes_field(1000, b"of a later version")
NO_MESSAGE = bytes_field(6, b"\xff")
"""A malformed track_event_descriptor field."""
FLAGS = (
    "will_notify_on_stop",
    "will_notify_on_start",
    "handles_incremental_state_clear",
    "no_flush",
)


@pytest.fixture
def setup() -> Setup:
    return Setup()


def descriptor_of(state: TracingServiceState, index: int = 0) -> DataSourceDescriptor:
    descriptor = state.data_sources[index].ds_descriptor
    assert descriptor is not None
    return descriptor


@given(st.text(), st.integers(0, 2**64 - 1), st.lists(st.booleans(), min_size=4, max_size=4))
def test_header_contains_the_plain_fields_of_the_descriptor(
    name: str, ident: int, flags: list[bool]
) -> None:
    fields = dict(zip(FLAGS, flags, strict=True))
    descriptor = DataSourceDescriptor(name=name, id=ident, **fields)
    header = DescriptorHeader(NO_MESSAGE + descriptor.encode() + UNKNOWN)
    assert (header.name, header.id) == (name, ident)
    assert [getattr(header, flag) for flag in FLAGS] == flags
    assert without_details(NO_MESSAGE + descriptor.encode() + UNKNOWN) == descriptor.encode()


@pytest.mark.parametrize("descriptor", [b"\xff", b"\x0a\x05ab", b"\x0b"])
def test_malformed_descriptors_are_refused(descriptor: bytes) -> None:
    with pytest.raises(DecodeError):
        DescriptorHeader(descriptor)


def test_data_source_descriptors_are_listed_unchanged(setup: Setup) -> None:
    # Stretto's encoder would put the unknown fields last, and shorten the length.
    descriptor = UNKNOWN + b"\x0a\x82\x00ds" + NO_MESSAGE
    endpoint = setup.producer().endpoint
    endpoint.register_encoded_data_source(descriptor)
    assert bytes_field(1, descriptor) in setup.consumer().endpoint.encoded_service_state()


def test_data_source_with_malformed_details_is_listed(setup: Setup) -> None:
    endpoint = setup.producer("good").endpoint
    endpoint.register_encoded_data_source(b"\x0a\x03bad" + NO_MESSAGE)
    states: list[TracingServiceState] = []
    setup.consumer().endpoint.query_service_state(states.append)
    setup.run()
    names = [each.ds_descriptor and each.ds_descriptor.name for each in states[0].data_sources]
    assert names == ["good", "bad"]
    assert states[0].data_sources[1].producer_id == 1


def test_large_state_is_split_into_parts_of_whole_data_sources() -> None:
    state = TracingServiceState(num_sessions=3).encode()
    sources = [
        encoded_data_source(DataSourceDescriptor(name=f"{number:050}").encode(), number)
        for number in range(20)
    ]
    parts = list(split_state(state + b"".join(sources), 200, lambda *_: None))
    assert all(0 < len(part) <= 200 for part in parts)
    assert b"".join(parts) == state + b"".join(sources)
    for part in parts:
        TracingServiceState.decode(part)


def test_descriptor_too_large_for_a_part_is_shortened_and_reported() -> None:
    small = DataSourceDescriptor(name="small").encode()
    large = DataSourceDescriptor(name="large").encode() + bytes_field(8, bytes(300))
    reported: list[tuple[str, int]] = []
    encoded = encoded_data_source(large, 1) + encoded_data_source(small, 2)
    parts = split_state(encoded, 200, lambda name, size: reported.append((name, size)))
    state = decode_state(b"".join(parts))
    assert descriptor_of(state) == DataSourceDescriptor(name="large")
    assert state.data_sources[0].producer_id == 1
    assert descriptor_of(state, 1).encode() == small
    assert reported == [("large", len(large))]
