"""Implements the native classes of `stretto.protozero.typed_decoder` in Python."""

from __future__ import annotations

from stretto.protozero.codec import DECODED_FIELD_METHODS
from stretto.protozero.decoder_pure import DecodedField, Decoder

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T", bound="type[IndexedMessage]")


class IndexedMessage:
    """A message with its fields by number."""

    __slots__ = ("_data", "_fields", "bytes_left")

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        decoder = Decoder(data)
        self._data = data
        self._fields = list(decoder)
        self.bytes_left: int = decoder.bytes_left

    def _last(self, number: int, /) -> DecodedField | None:
        found = self._all(number)
        return found[-1] if found else None

    def _all(self, number: int, /) -> list[DecodedField]:
        return [field for field in self._fields if field.number == number]

    def __iter__(self) -> Decoder:
        return Decoder(self._data)


class DecoderField:
    """A Python descriptor in the classes of generated decoders: it reads a singular field."""

    __slots__ = ("_fallback", "_helper", "_kind", "number")

    def __init__(
        self, number: int, kind: str, fallback: Any, helper: Callable[[], Any] | None
    ) -> None:
        self.number = number
        self._kind = kind
        self._fallback = fallback
        self._helper = helper

    def __get__(self, decoder: IndexedMessage | None, _owner: type | None = None) -> Any:
        if decoder is None:
            return self
        found = decoder._last(self.number)  # noqa: SLF001
        if found is None:
            return self._fallback
        if self._helper is not None:
            return self._helper()(found.data)
        if self._kind == "bytes":
            return found.data
        return getattr(found, DECODED_FIELD_METHODS[self._kind])()


def close_decoder_class(made: T, /) -> T:
    """Return the class unchanged; the native function prepares it for fast access."""
    return made
