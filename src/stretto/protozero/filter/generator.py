"""Generates filter bytecode, message by message and field by field.

::

    generator = FilterBytecodeGenerator()
    generator.add_nested_field(1, message=1)
    generator.end_message()                       # message 0
    generator.add_simple_field_range(8, 3)
    generator.add_filter_string_field(14, semantic_type=ATRACE)
    generator.end_message()                       # message 1
    bytecode, overlay = generator.serialize()
"""

from __future__ import annotations

from stretto.base.errors import ConfigError
from stretto.protozero.filter import bytecode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_VERSIONS: Final = (bytecode.V1, bytecode.V2, bytecode.V54)


class FilterBytecodeGenerator:
    """Generates a filter's bytecode; fields and messages are added in the order of their numbers.

    Args:
        version: The oldest version of readers: V1, V2 or V54 of `bytecode`. For V2, instructions
            that these readers don't support are put into an overlay for newer readers.

    Raises:
        ConfigError: The version is unknown.
    """

    def __init__(self, version: int = bytecode.V2) -> None:
        if version not in _VERSIONS:
            raise ConfigError(f"version {version} is unknown: use one of {_VERSIONS}")
        self._version = version
        self._words: list[int] = []
        self._overlay: list[int] = []
        self._messages = 0
        self._highest_nested = 0
        self._last_field = 0
        self._open = True  # Whether the current message still needs `end_message`.

    def add_simple_field(self, field: int) -> None:
        """Allow a scalar field, or a message that is passed on unchanged.

        Raises:
            ConfigError: The number is out of range, or not above that of the previous field.
        """
        self._advance(field)
        self._add(field, bytecode.SIMPLE_FIELD)

    def add_simple_field_range(self, first: int, count: int) -> None:
        """Allow `count` simple fields with consecutive numbers."""
        if count < 1:
            raise ConfigError(f"a range of {count} fields: it takes one at least")
        self._advance(first, count)
        self._add(first, bytecode.SIMPLE_FIELD_RANGE)
        self._words.append(count)

    def add_nested_field(self, field: int, message: int) -> None:
        """Allow a field with a message; the message may be added later."""
        self._advance(field)
        self._add(field, bytecode.NESTED_FIELD)
        self._words.append(message)
        self._highest_nested = max(self._highest_nested, message)

    def add_filter_string_field(
        self,
        field: int,
        *,
        semantic_type: int = 0,
        allow_in_v1: bool = False,
        allow_in_v2: bool = False,
    ) -> None:
        """Allow a string that is rewritten by the rules of the filter.

        Args:
            field: Field number.
            semantic_type: Type of its content (see `strings`); 0 if unspecified.
            allow_in_v1: Whether V1 readers keep the string unchanged; otherwise V1 readers drop the
                string.
            allow_in_v2: Whether V2 readers, which don't support semantic types, apply the rules for
                unspecified strings; otherwise V2 readers drop the string.
        """
        if not 0 <= semantic_type <= 0xFFFF:
            raise ConfigError(f"semantic type {semantic_type} has more than 16 bits")
        self._advance(field)
        if self._version == bytecode.V1:
            if allow_in_v1:
                self._add(field, bytecode.SIMPLE_FIELD)
        elif not semantic_type:
            self._add(field, bytecode.FILTER_STRING)
        elif self._version == bytecode.V2:
            if allow_in_v2:
                self._add(field, bytecode.FILTER_STRING)
            instruction = field << 3 | bytecode.FILTER_STRING_WITH_TYPE
            self._overlay += [self._messages, instruction, semantic_type]
        else:
            self._add(field, bytecode.FILTER_STRING_WITH_TYPE)
            self._words.append(semantic_type)

    def end_message(self) -> None:
        """End the current message and begin the next one."""
        self._words.append(bytecode.END_OF_MESSAGE)
        self._messages += 1
        self._last_field = 0
        self._open = False

    def serialize(self) -> tuple[bytes, bytes]:
        """Return the bytecode and the overlay, which is empty if it isn't needed.

        Raises:
            ConfigError: The last message was not ended, or a nested message is missing.
        """
        if self._open:
            raise ConfigError("the last message of the filter has no end: call end_message()")
        if self._highest_nested >= self._messages:
            raise ConfigError(
                f"a field refers to message {self._highest_nested}, but the filter has "
                f"{self._messages}: add it"
            )
        overlay = bytecode.encode_words(self._overlay) if self._overlay else b""
        return bytecode.encode_words(self._words), overlay

    def _advance(self, field: int, count: int = 1) -> None:
        last = field + count - 1
        if not self._last_field < field <= last <= bytecode.MAX_FIELD:
            raise ConfigError(
                f"field {field} can't follow field {self._last_field}: numbers must ascend, "
                f"from 1 to {bytecode.MAX_FIELD}"
            )
        self._last_field = last
        self._open = True

    def _add(self, field: int, opcode: int) -> None:
        self._words.append(field << 3 | opcode)
