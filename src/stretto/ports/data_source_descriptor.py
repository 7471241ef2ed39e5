"""Decodes the fields of a DataSourceDescriptor that the service uses.

All other fields (categories, counters, fields of later versions) are for consumers that query the
service's state: the service forwards the encoded descriptor unchanged.
"""

from __future__ import annotations

from stretto.protozero.wire import DELIMITED, VARINT, read_fields

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from typing import Final


_NAME: Final = 1
_WILL_NOTIFY_ON_STOP: Final = 2
_WILL_NOTIFY_ON_START: Final = 3
_HANDLES_INCREMENTAL_STATE_CLEAR: Final = 4
_ID: Final = 7
_NO_FLUSH: Final = 9
_HEADER_FIELDS: Final = (
    _NAME,
    _WILL_NOTIFY_ON_STOP,
    _WILL_NOTIFY_ON_START,
    _HANDLES_INCREMENTAL_STATE_CLEAR,
    _ID,
    _NO_FLUSH,
)


class DescriptorHeader:
    """The fields of a DataSourceDescriptor that the service uses.

    Raises:
        DecodeError: The descriptor isn't a sequence of fields. The contents of other fields
            are not checked.
    """

    __slots__ = (
        "handles_incremental_state_clear", "id", "name", "no_flush", "will_notify_on_start",
        "will_notify_on_stop",
    )  # fmt: skip

    def __init__(self, descriptor: bytes) -> None:
        name = b""
        flags: dict[int, int] = {}
        for number, wire_type, value, _, end in read_fields(descriptor):
            if number == _NAME and wire_type == DELIMITED:
                name = descriptor[value:end]
            elif wire_type == VARINT:
                flags[number] = value
        self.name = name.decode("utf-8", "surrogateescape")
        self.id = flags.get(_ID, 0)
        self.will_notify_on_stop = bool(flags.get(_WILL_NOTIFY_ON_STOP))
        self.will_notify_on_start = bool(flags.get(_WILL_NOTIFY_ON_START))
        self.no_flush = bool(flags.get(_NO_FLUSH))
        clears = flags.get(_HANDLES_INCREMENTAL_STATE_CLEAR)
        self.handles_incremental_state_clear = bool(clears)


def without_details(descriptor: bytes) -> bytes:
    """Return the descriptor with only the fields of its header. Raises DecodeError."""
    return b"".join(
        descriptor[start:end]
        for number, _, _, start, end in read_fields(descriptor)
        if number in _HEADER_FIELDS
    )
