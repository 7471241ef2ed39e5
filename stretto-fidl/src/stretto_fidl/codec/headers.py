"""Headers of messages, and epitaphs.

    transaction     0 txid: 4 bytes   4 at-rest flags: 2   6 dynamic flags: 1   7 magic: 1
    (16 bytes)      8 ordinal: 8

    at rest         0 zero: 1   1 magic: 1   2 at-rest flags: 2   4 zero: 4
    (8 bytes)

    epitaph         the header of a transaction with txid 0 and the ordinal of all ones,
                    then the status: int32 and 4 bytes of padding

The at-rest flag 2 says that the body is in wire format v2; else it is in v1. The
dynamic flag 0x80 says that the interaction is flexible: a receiver need not close
the channel if the ordinal is unknown.
"""

from __future__ import annotations

import struct
from typing import Final

from stretto_fidl.codec.layout import V1, V2
from stretto_fidl.codec.wire_error import (
    INVALID_HEADER,
    INVALID_PADDING_BYTE,
    TOO_FEW_BYTES_IN_PRIMARY_OBJECT,
    UNKNOWN_MAGIC,
    UNSUPPORTED_WIRE_FORMAT,
    WireError,
)
from stretto_fidl.ordinals import EPITAPH_ORDINAL

MAGIC: Final = 1
AT_REST_V2: Final = 0x0002
FLEXIBLE: Final = 0x80
HEADER_SIZE: Final = 16
AT_REST_HEADER_SIZE: Final = 8

_TRANSACTION = struct.Struct("<IHBBQ")
_AT_REST = struct.Struct("<BBHI")
_STATUS = struct.Struct("<i4x")


def _wire(magic: int, at_rest_flags: int) -> int:
    if magic != MAGIC:
        raise WireError(UNKNOWN_MAGIC, f"the magic number is {magic}, not {MAGIC}")
    return V2 if at_rest_flags & AT_REST_V2 else V1


class TransactionHeader:
    """The header of a message in a channel.

    Args:
        txid: The id that a reply shares with its request; 0 where there is no reply.
        ordinal: The ordinal of the method.
        flexible: Whether a receiver without this method may keep the channel open.
        wire: `V2` or `V1`.
    """

    __slots__ = ("flexible", "ordinal", "txid", "wire")

    def __init__(self, txid: int, ordinal: int, flexible: bool = False, wire: int = V2) -> None:
        self.txid, self.ordinal, self.flexible, self.wire = txid, ordinal, flexible, wire

    def encode(self) -> bytes:
        """Return the 16 bytes of the header. Only wire format v2 is written.

        Raises:
            WireError: The wire format isn't v2, or a number has too many bits.
        """
        if self.wire != V2:
            raise WireError(UNSUPPORTED_WIRE_FORMAT, "only wire format v2 can be written")
        dynamic = FLEXIBLE if self.flexible else 0
        try:
            return _TRANSACTION.pack(self.txid, AT_REST_V2, dynamic, MAGIC, self.ordinal)
        except struct.error:
            problem = f"txid {self.txid!r} and ordinal {self.ordinal!r} take 32 and 64 bits"
            raise WireError(INVALID_HEADER, problem) from None

    @property
    def is_epitaph(self) -> bool:
        """Whether the message is an epitaph, which is the last message of a channel."""
        return self.ordinal == EPITAPH_ORDINAL

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TransactionHeader):
            return NotImplemented
        mine = self.txid, self.ordinal, self.flexible, self.wire
        return mine == (other.txid, other.ordinal, other.flexible, other.wire)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TransactionHeader({self.txid}, {self.ordinal:#x}, {self.flexible}, {self.wire})"


def decode_header(data: bytes) -> TransactionHeader:
    """Decode the header of a message.

    Raises:
        WireError: The header is too short, has another magic number, or no ordinal.
    """
    if len(data) < HEADER_SIZE:
        problem = f"{len(data)} bytes, a header takes {HEADER_SIZE}"
        raise WireError(TOO_FEW_BYTES_IN_PRIMARY_OBJECT, problem, 0)
    txid, at_rest, dynamic, magic, ordinal = _TRANSACTION.unpack_from(data)
    wire = _wire(magic, at_rest)
    if not ordinal:
        raise WireError(INVALID_HEADER, "the ordinal is 0", 8)
    return TransactionHeader(txid, ordinal, bool(dynamic & FLEXIBLE), wire)


def encode_epitaph(status: int) -> bytes:
    """Return an epitaph: the last message of a server, with a Zircon status as the reason."""
    return TransactionHeader(0, EPITAPH_ORDINAL).encode() + _STATUS.pack(status)


def decode_epitaph(data: bytes) -> int:
    """Return the status of an epitaph.

    Raises:
        WireError: The bytes are not a complete epitaph.
    """
    header = decode_header(data)
    if not header.is_epitaph or header.txid or len(data) != HEADER_SIZE + _STATUS.size:
        raise WireError(INVALID_HEADER, "an epitaph has txid 0, its ordinal, and a status", 0)
    if any(data[-4:]):
        raise WireError(INVALID_PADDING_BYTE, "padding isn't zero", len(data) - 4)
    status: int = _STATUS.unpack_from(data, HEADER_SIZE)[0]
    return status


def encode_at_rest_header() -> bytes:
    """Return the header that precedes a value in a file."""
    return _AT_REST.pack(0, MAGIC, AT_REST_V2, 0)


def decode_at_rest_header(data: bytes) -> int:
    """Return the wire format of the value that follows a header.

    Raises:
        WireError: The bytes are not a header of data at rest.
    """
    if len(data) < AT_REST_HEADER_SIZE:
        problem = f"{len(data)} bytes, a header takes {AT_REST_HEADER_SIZE}"
        raise WireError(TOO_FEW_BYTES_IN_PRIMARY_OBJECT, problem, 0)
    zero, magic, at_rest, reserved = _AT_REST.unpack_from(data)
    wire = _wire(magic, at_rest)
    if zero or reserved:
        raise WireError(INVALID_HEADER, "reserved bytes aren't zero", 0 if zero else 4)
    return wire
