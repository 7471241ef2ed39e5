"""FIDL's wire format: converts values of the bindings' classes to bytes and handles, and back."""

from __future__ import annotations

from stretto_fidl.codec.handle import Handle, HandleDisposition
from stretto_fidl.codec.headers import (
    TransactionHeader,
    decode_epitaph,
    decode_header,
    encode_epitaph,
)
from stretto_fidl.codec.layout import V1, V2
from stretto_fidl.codec.message import (
    MAX_BYTES,
    MAX_HANDLES,
    Message,
    decode,
    decode_body,
    encode,
    encode_message,
    persist,
    unpersist,
)
from stretto_fidl.codec.wire_error import WireError

__all__ = [
    "encode",
    "decode",
    "encode_message",
    "decode_body",
    "persist",
    "unpersist",
    "Message",
    "TransactionHeader",
    "decode_header",
    "encode_epitaph",
    "decode_epitaph",
    "Handle",
    "HandleDisposition",
    "WireError",
    "V1",
    "V2",
    "MAX_BYTES",
    "MAX_HANDLES",
]
