"""The error of the codec, with a code for each kind of failure.

The codes up to `VECTOR_COUNT_EXCEEDS_32_BIT_LIMIT` are those of FIDL's conformance
suite (GIDL). The other codes are for wrong headers, and for values of a wrong Python type.
"""

from __future__ import annotations

from typing import Final

from stretto_fidl.errors import FidlError

COUNT_EXCEEDS_LIMIT: Final = "COUNT_EXCEEDS_LIMIT"
ENVELOPE_BYTES_EXCEED_MESSAGE_LENGTH: Final = "ENVELOPE_BYTES_EXCEED_MESSAGE_LENGTH"
ENVELOPE_HANDLES_EXCEED_MESSAGE_LENGTH: Final = "ENVELOPE_HANDLES_EXCEED_MESSAGE_LENGTH"
EXCEEDED_MAX_OUT_OF_LINE_DEPTH: Final = "EXCEEDED_MAX_OUT_OF_LINE_DEPTH"
FLEXIBLE_UNION_UNKNOWN_FIELD: Final = "FLEXIBLE_UNION_UNKNOWN_FIELD"
INCORRECT_HANDLE_TYPE: Final = "INCORRECT_HANDLE_TYPE"
INVALID_BOOLEAN: Final = "INVALID_BOOLEAN"
INVALID_EMPTY_STRUCT: Final = "INVALID_EMPTY_STRUCT"
INVALID_HANDLE_PRESENCE_INDICATOR: Final = "INVALID_HANDLE_PRESENCE_INDICATOR"
INVALID_INLINE_BIT_IN_ENVELOPE: Final = "INVALID_INLINE_BIT_IN_ENVELOPE"
INVALID_INLINE_MARKER_IN_ENVELOPE: Final = "INVALID_INLINE_MARKER_IN_ENVELOPE"
INVALID_NUM_BYTES_IN_ENVELOPE: Final = "INVALID_NUM_BYTES_IN_ENVELOPE"
INVALID_NUM_HANDLES_IN_ENVELOPE: Final = "INVALID_NUM_HANDLES_IN_ENVELOPE"
INVALID_PADDING_BYTE: Final = "INVALID_PADDING_BYTE"
INVALID_PRESENCE_INDICATOR: Final = "INVALID_PRESENCE_INDICATOR"
MISSING_REQUIRED_HANDLE_RIGHTS: Final = "MISSING_REQUIRED_HANDLE_RIGHTS"
NON_EMPTY_STRING_WITH_NULL_BODY: Final = "NON_EMPTY_STRING_WITH_NULL_BODY"
NON_EMPTY_VECTOR_WITH_NULL_BODY: Final = "NON_EMPTY_VECTOR_WITH_NULL_BODY"
NON_NULLABLE_TYPE_WITH_NULL_VALUE: Final = "NON_NULLABLE_TYPE_WITH_NULL_VALUE"
NON_RESOURCE_UNKNOWN_HANDLES: Final = "NON_RESOURCE_UNKNOWN_HANDLES"
STRICT_BITS_UNKNOWN_BIT: Final = "STRICT_BITS_UNKNOWN_BIT"
STRICT_ENUM_UNKNOWN_VALUE: Final = "STRICT_ENUM_UNKNOWN_VALUE"
STRICT_UNION_UNKNOWN_FIELD: Final = "STRICT_UNION_UNKNOWN_FIELD"
STRING_COUNT_EXCEEDS_32_BIT_LIMIT: Final = "STRING_COUNT_EXCEEDS_32_BIT_LIMIT"
STRING_NOT_UTF8: Final = "STRING_NOT_UTF8"
STRING_TOO_LONG: Final = "STRING_TOO_LONG"
TABLE_COUNT_EXCEEDS_32_BIT_LIMIT: Final = "TABLE_COUNT_EXCEEDS_32_BIT_LIMIT"
TOO_FEW_BYTES: Final = "TOO_FEW_BYTES"
TOO_FEW_BYTES_IN_PRIMARY_OBJECT: Final = "TOO_FEW_BYTES_IN_PRIMARY_OBJECT"
TOO_FEW_HANDLES: Final = "TOO_FEW_HANDLES"
TOO_MANY_BYTES_IN_MESSAGE: Final = "TOO_MANY_BYTES_IN_MESSAGE"
TOO_MANY_HANDLES_IN_MESSAGE: Final = "TOO_MANY_HANDLES_IN_MESSAGE"
UNEXPECTED_ORDINAL: Final = "UNEXPECTED_ORDINAL"
UNION_FIELD_NOT_SET: Final = "UNION_FIELD_NOT_SET"
VECTOR_COUNT_EXCEEDS_32_BIT_LIMIT: Final = "VECTOR_COUNT_EXCEEDS_32_BIT_LIMIT"

ARRAY_COUNT_MISMATCH: Final = "ARRAY_COUNT_MISMATCH"
HANDLE_CLOSED: Final = "HANDLE_CLOSED"
INVALID_HEADER: Final = "INVALID_HEADER"
MESSAGE_EXCEEDS_LIMIT: Final = "MESSAGE_EXCEEDS_LIMIT"
NON_CANONICAL_TABLE: Final = "NON_CANONICAL_TABLE"
UNKNOWN_MAGIC: Final = "UNKNOWN_MAGIC"
UNSUPPORTED_WIRE_FORMAT: Final = "UNSUPPORTED_WIRE_FORMAT"
VALUE_OUT_OF_RANGE: Final = "VALUE_OUT_OF_RANGE"
WRONG_TYPE: Final = "WRONG_TYPE"

CODES: Final = frozenset(
    value for name, value in list(globals().items()) if name.isupper() and name == value
)
"""All error codes."""


_QUOTING: Final = (
    VALUE_OUT_OF_RANGE,
    INVALID_BOOLEAN,
    STRICT_BITS_UNKNOWN_BIT,
    STRICT_ENUM_UNKNOWN_VALUE,
)
"""The codes whose `problem` quotes the value."""


class WireError(FidlError, ValueError):
    """A message breaks the wire format, or a value doesn't fit its type.

    Attributes:
        code: One of the constants of this module.
        problem: The mistake, without its place.
        path: Names, ordinals and indexes from the outermost value to the wrong value.
        offset: The offset in the message, in bytes; None while encoding.
    """

    def __init__(self, code: str, problem: str, offset: int | None = None) -> None:
        super().__init__(code, problem)
        self.code = code
        self.problem = problem
        self.path: list[str] = []
        self.offset = offset
        self._anchored = offset is not None

    def add_step(self, step: str, offset: int | None = None, *, hidden: bool = False) -> None:
        """Add the step from an object to the member in which the error happened.

        Args:
            step: The member's name, or `[index]`.
            offset: The offset of the member in the object, in bytes; None while encoding.
            hidden: Whether the member is sensitive.
        """
        self.path.insert(0, step)
        if hidden:
            self.hide()
        if offset is not None and not self._anchored:
            self.offset = (self.offset or 0) + offset

    def hide(self) -> None:
        """Remove a sensitive value from the text of the error."""
        if self.code in _QUOTING:
            self.problem = "a sensitive value is wrong"
            self.args = (self.code, self.problem)

    def add_base(self, start: int) -> None:
        """Add the offset of the object in the message to the offset within the object."""
        if not self._anchored:
            self.offset = (self.offset or 0) + start
            self._anchored = True

    def __str__(self) -> str:
        """Return the text: the place in the value, the problem, the code and the place in the
        message.
        """
        path = ".".join(self.path).replace(".[", "[")
        where = f"{path}: " if path else ""
        offset = "" if self.offset is None else f", at byte {self.offset}"
        return f"{where}{self.problem} ({self.code}{offset})"
