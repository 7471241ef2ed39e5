"""Encodes and decodes whole messages.

A message has no header (`encode`, `decode`), the header of a transaction
(`encode_message`, `decode_body`), or the header of data at rest (`persist`,
`unpersist`). The formats of headers are in `headers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from stretto_fidl.codec.decoding.plan import Decoder, primary
from stretto_fidl.codec.encoding.plan import Encoder, writer
from stretto_fidl.codec.headers import (
    AT_REST_HEADER_SIZE,
    HEADER_SIZE,
    TransactionHeader,
    decode_at_rest_header,
    encode_at_rest_header,
)
from stretto_fidl.codec.layout import V2
from stretto_fidl.codec.types import Type
from stretto_fidl.codec.wire_error import (
    MESSAGE_EXCEEDS_LIMIT,
    TOO_FEW_BYTES_IN_PRIMARY_OBJECT,
    TOO_MANY_BYTES_IN_MESSAGE,
    TOO_MANY_HANDLES_IN_MESSAGE,
    WireError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto_fidl.codec.handle import Handle, HandleDisposition

Payload = TypeVar("Payload")
"""A class of the bindings."""

MAX_BYTES: Final = 65536
"""The maximum size of a message in a channel, including its header."""
MAX_HANDLES: Final = 64
"""The maximum number of handles of a message in a channel."""


def type_of(what: Any) -> Type:
    """Return the FIDL type of a class; return a type unchanged.

    Raises:
        TypeError: The argument is neither a type nor a class of the bindings.
    """
    found = what if isinstance(what, Type) else getattr(what, "TYPE", None)
    if not isinstance(found, Type):
        name = getattr(type(what), "__qualname__", "")
        raise TypeError(f"needs a class of the bindings or an object of one, not of {name}")
    return found


def encode(value: Any, type_: Any = None) -> tuple[bytes, list[HandleDisposition]]:
    """Encode a value, without a header.

    Args:
        value: The value to encode.
        type_: A class of the bindings, or a type; by default the class of the value.

    Returns:
        The bytes, and the handles in the order of the message. The value owns the handles until
        the message is sent.

    Raises:
        WireError: The value breaks its type.
    """
    encoder = Encoder()
    writer(type_of(value if type_ is None else type_))(value, encoder, 0)
    return bytes(encoder.out), encoder.handles


@overload
def decode(
    type_: type[Payload],
    data: bytes,
    handles: Sequence[Handle] = (),
    *,
    wire: int = V2,
    start: int = 0,
) -> Payload: ...


@overload
def decode(
    type_: Type, data: bytes, handles: Sequence[Handle] = (), *, wire: int = V2, start: int = 0
) -> Any: ...


def decode(
    type_: Any, data: bytes, handles: Sequence[Handle] = (), *, wire: int = V2, start: int = 0
) -> Any:
    """Decode a value.

    Args:
        type_: A class of the bindings, or a type.
        data: The message.
        handles: The handles of the message. The value owns them afterwards.
        wire: `V2` or `V1`.
        start: The offset of the value in the message, behind a header.

    Raises:
        WireError: The message breaks FIDL's rules; all its handles are closed.
    """
    type_ = type_of(type_)
    decoder = Decoder(_bytes(data), handles, start)
    try:
        size, read = primary(type_, wire)
        if len(data) - start < size:
            problem = f"{len(data) - start} bytes, the value takes {size} at least"
            raise WireError(TOO_FEW_BYTES_IN_PRIMARY_OBJECT, problem, start)
        value = read(decoder, 0)
        check_consumed(decoder)
    except WireError:
        close_all(handles)
        raise
    return value


def _bytes(data: Any) -> bytes:
    """Return a copy of bytes; refuse an int or a list, which `bytes` would accept."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"a message is bytes, not of {type(data).__qualname__}")
    return bytes(data)


def close_all(handles: Sequence[Handle]) -> None:
    """Close all handles."""
    for handle in handles:
        handle.close()


def check_consumed(decoder: Decoder) -> None:
    """Raise an error if the value has not used all bytes and handles of the message."""
    extra = len(decoder.data) - decoder.next
    if extra:
        problem = f"{extra} bytes after the value"
        raise WireError(TOO_MANY_BYTES_IN_MESSAGE, problem, decoder.next)
    extra = len(decoder.handles) - decoder.next_handle
    if extra:
        raise WireError(TOO_MANY_HANDLES_IN_MESSAGE, f"{extra} handles too many")


def encode_message(header: TransactionHeader, payload: Any = None) -> Message:
    """Encode a message of a channel.

    Args:
        header: The header of the message.
        payload: An object of a struct, table or union; None if the method has none.

    Raises:
        WireError: The payload breaks its type, or the message is too large.
    """
    encoder = Encoder()
    encoder.out += header.encode()
    if payload is not None:
        writer(type_of(payload))(payload, encoder, 0)
    size, count = len(encoder.out), len(encoder.handles)
    if size > MAX_BYTES or count > MAX_HANDLES:
        problem = f"{size} bytes and {count} handles; {MAX_BYTES} and {MAX_HANDLES} are allowed"
        raise WireError(MESSAGE_EXCEEDS_LIMIT, problem)
    return Message(bytes(encoder.out), encoder.handles)


class Message:
    """A message to send: its bytes and its handles."""

    __slots__ = ("data", "handles")

    def __init__(self, data: bytes, handles: list[HandleDisposition]) -> None:
        self.data = data
        self.handles = handles


def decode_body(
    header: TransactionHeader, payload: Any, data: bytes, handles: Sequence[Handle] = ()
) -> Any:
    """Decode the body of a message, in the wire format that its header names.

    Args:
        header: The decoded header of the message.
        payload: The class of the payload; None if the method has none.
        data: The whole message.
        handles: The handles of the message. The value owns them afterwards.

    Raises:
        WireError: The message breaks FIDL's rules; all its handles are closed.
    """
    if payload is not None:
        return decode(payload, data, handles, wire=header.wire, start=HEADER_SIZE)
    decoder = Decoder(data, handles, HEADER_SIZE)
    try:
        check_consumed(decoder)
    except WireError:
        close_all(handles)
        raise
    return None


def persist(value: Any) -> bytes:
    """Encode a value for a file: with the header of data at rest, and without handles.

    Raises:
        WireError: The value breaks its type, or holds handles.
    """
    data, handles = encode(value)
    if handles:
        raise WireError(TOO_MANY_HANDLES_IN_MESSAGE, "handles can't be kept in files")
    return encode_at_rest_header() + data


def unpersist(payload: type[Payload], data: bytes) -> Payload:
    """Decode the result of `persist`.

    Args:
        payload: The class of the value.
        data: The contents of the file.

    Raises:
        WireError: The bytes break FIDL's rules.
    """
    data = _bytes(data)
    return decode(payload, data, wire=decode_at_rest_header(data), start=AT_REST_HEADER_SIZE)
