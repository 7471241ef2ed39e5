"""Splits a TracingServiceState into frames, without changing the descriptors in it.

A producer's descriptor may be larger than a frame, or malformed. Such a descriptor is reduced to
its name and flags, so that the rest of the state can be sent.
"""

from __future__ import annotations

from stretto.base.errors import DecodeError
from stretto.ports.data_source_descriptor import DescriptorHeader, without_details
from stretto.ports.encoded_message import field_bytes, split_message, without_field
from stretto.protos.trace import TracingServiceState
from stretto.protozero.wire import DELIMITED, bytes_field, read_fields, varint_field

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Final

_DATA_SOURCES: Final = 2
"""Field of TracingServiceState."""
_DESCRIPTOR: Final = 1
"""Field of TracingServiceState.DataSource, like `_PRODUCER_ID`."""
_PRODUCER_ID: Final = 2


def encoded_data_source(descriptor: bytes, producer_id: int) -> bytes:
    """Encode a data source as a field of the state."""
    source = bytes_field(_DESCRIPTOR, descriptor) + varint_field(_PRODUCER_ID, producer_id)
    return bytes_field(_DATA_SOURCES, source)


def split_state(
    encoded: bytes, limit: int, on_shortened: Callable[[str, int], object]
) -> Iterator[bytes]:
    """Split a state into parts of at most `limit` bytes. Joined, the parts are the state again.

    Args:
        encoded: The encoded state.
        limit: Maximum size of a part, in bytes.
        on_shortened: Called with the name of each data source whose descriptor is reduced to its
            header, and with the size of the descriptor in bytes.
    """
    fitting = bytearray()
    for number, _, value, start, end in read_fields(encoded):
        if number != _DATA_SOURCES or end - start <= limit:
            fitting += encoded[start:end]
            continue
        source = encoded[value:end]
        descriptor = field_bytes(source, _DESCRIPTOR)
        on_shortened(DescriptorHeader(descriptor).name, len(descriptor))
        fitting += bytes_field(_DATA_SOURCES, _without_details(source))
    return split_message(bytes(fitting), limit)


def decode_state(encoded: bytes) -> TracingServiceState:
    """Decode a state; malformed descriptors are reduced to their headers.

    Raises:
        DecodeError: The state is malformed outside of its descriptors.
    """
    state = TracingServiceState.decode(without_field(encoded, _DATA_SOURCES))
    state.data_sources = [
        _decode_data_source(encoded[value:end])
        for number, wire_type, value, _, end in read_fields(encoded)
        if number == _DATA_SOURCES and wire_type == DELIMITED
    ]
    return state


def _decode_data_source(encoded: bytes) -> TracingServiceState.DataSource:
    try:
        return TracingServiceState.DataSource.decode(encoded)
    except DecodeError:
        return TracingServiceState.DataSource.decode(_without_details(encoded))


def _without_details(source: bytes) -> bytes:
    header = without_details(field_bytes(source, _DESCRIPTOR))
    return bytes_field(_DESCRIPTOR, header) + without_field(source, _DESCRIPTOR)
