"""TracingServiceState on the wire: parts that fit into frames, descriptors as they came.

The descriptor of a data source is its producer's: it may be larger than a frame, or no
message of ours. Then its name and flags remain, and nobody's view of the service is lost.
"""

from __future__ import annotations

from stretto.base.errors import DecodeError
from stretto.ports.data_source_descriptor import DescriptorHeader, without_details
from stretto.ports.encoded_message import field_bytes, split_message, without_field
from stretto.protos.trace import TracingServiceState
from stretto.protozero.wire import DELIMITED, bytes_field, read_field, varint_field

TYPE_CHECKING = False  # `typing` costs more to import than everything here
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Final

_DATA_SOURCES: Final = 2
"""Of TracingServiceState."""
_DESCRIPTOR: Final = 1
"""Of TracingServiceState.DataSource, like the next."""
_PRODUCER_ID: Final = 2


def encoded_data_source(descriptor: bytes, producer_id: int) -> bytes:
    """A data source as a field of the state."""
    source = bytes_field(_DESCRIPTOR, descriptor) + varint_field(_PRODUCER_ID, producer_id)
    return bytes_field(_DATA_SOURCES, source)


def split_state(
    encoded: bytes, limit: int, on_shortened: Callable[[str, int], object]
) -> Iterator[bytes]:
    """Parts of a state of at most `limit` bytes each, which are one state if joined.

    Args:
        encoded: The state.
        limit: In bytes.
        on_shortened: Called with the name of a data source whose descriptor is left out but
            for its header, and with the size that it has.
    """
    fitting = bytearray()
    for number, field, content in _fields(encoded):
        if number != _DATA_SOURCES or len(field) <= limit:
            fitting += field
            continue
        descriptor = field_bytes(content, _DESCRIPTOR)
        on_shortened(DescriptorHeader(descriptor).name, len(descriptor))
        fitting += bytes_field(_DATA_SOURCES, _without_details(content))
    return split_message(bytes(fitting), limit)


def decode_state(encoded: bytes) -> TracingServiceState:
    """Decode a state.

    Raises:
        DecodeError: It is malformed, elsewhere than in what descriptors carry.
    """
    rest = bytearray()
    sources = []
    for number, field, content in _fields(encoded):
        if number == _DATA_SOURCES:
            sources.append(_decode_data_source(content))
        else:
            rest += field
    state = TracingServiceState.decode(bytes(rest))
    state.data_sources = sources
    return state


def _decode_data_source(encoded: bytes) -> TracingServiceState.DataSource:
    try:
        return TracingServiceState.DataSource.decode(encoded)
    except DecodeError:
        return TracingServiceState.DataSource.decode(_without_details(encoded))


def _without_details(source: bytes) -> bytes:
    header = without_details(field_bytes(source, _DESCRIPTOR))
    return bytes_field(_DESCRIPTOR, header) + without_field(source, _DESCRIPTOR)


def _fields(encoded: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """(number, field as it is encoded, content of a delimited one) of each field."""
    at, end = 0, len(encoded)
    while at < end:
        start = at
        number, wire_type, value, at = read_field(encoded, start, end)
        yield number, encoded[start:at], encoded[value:at] if wire_type == DELIMITED else b""
