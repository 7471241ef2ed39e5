"""Implements the native classes of `stretto.protozero.writer` in Python.

This module is used on platforms without native code. The interface and the output are the same.
"""

# ruff: noqa: SLF001 — a message accesses its child's attributes.

from __future__ import annotations

import sys

from stretto.base.errors import LocalProtocolError
from stretto.protozero import wire
from stretto.protozero.writer_methods import python_method

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from typing import Any, Self, TypeVar

    from stretto.protozero.writer_methods import WriterMethod

    W = TypeVar("W", bound="MessageWriter")

MAX_WRITER_METHODS = 1 << 29

_MAX_COMPACT_SIZE = 127
_MAX_NUMBER = (1 << 29) - 1

_raises = sys.flags.dev_mode
_misuses = 0


def raise_on_writer_misuse(raises: bool, /) -> bool:
    """Set whether writing to an ended message raises; return the previous setting."""
    global _raises
    before, _raises = _raises, bool(raises)
    return before


def writer_misuse_count() -> int:
    """Return the number of writes to ended messages in this process."""
    return _misuses


class MessageWriter:
    """A message that is being written, with methods by field number."""

    __slots__ = ("_begin", "_child", "_destination", "_ended", "_out", "_size")

    def __init__(self, destination: Any = None) -> None:
        """Begin a root message."""
        if destination is not None and not hasattr(destination, "write"):
            destination = memoryview(destination).cast("B")
        self._destination = destination
        self._start(bytearray(), 0)

    def _start(self, out: bytearray, begin: int) -> None:
        self._out = out
        self._begin = begin
        """Position of the payload; 0 for a root message."""
        self._child: MessageWriter | None = None
        self._ended = False
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes written so far, without those of an open nested message."""
        if self._ended:
            return self._size
        child = self._child
        return (len(self._out) if child is None else child._begin) - self._begin

    def _open(self) -> bytearray:
        """Return the buffer to append to; a temporary buffer if the message has ended."""
        global _misuses
        if self._ended:
            _misuses += 1
            if _raises:
                name = type(self).__qualname__
                raise LocalProtocolError(f"{name} has ended: open a new message and write to that")
            return bytearray()
        if self._child is not None:
            self._child.finalize()
            self._child = None
        return self._out

    def append_varint(self, number: int, value: int) -> None:
        """Append the low 64 bits of an integer as a varint."""
        self._append(number, wire.VARINT, wire.varint(value.__index__() & 0xFFFFFFFFFFFFFFFF))

    def append_fixed32(self, number: int, value: int) -> None:
        """Append the low 32 bits of an integer."""
        self._append(number, wire.FIXED32, (value.__index__() & 0xFFFFFFFF).to_bytes(4, "little"))

    def append_fixed64(self, number: int, value: int) -> None:
        """Append the low 64 bits of an integer."""
        low = value.__index__() & 0xFFFFFFFFFFFFFFFF
        self._append(number, wire.FIXED64, low.to_bytes(8, "little"))

    def append_bytes(self, number: int, data: bytes | bytearray | memoryview | str) -> None:
        """Append bytes, a string, or an encoded message."""
        data = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else bytes(data)
        self._append(number, wire.DELIMITED, wire.varint(len(data)) + data)

    def append_raw(self, data: bytes | bytearray | memoryview) -> None:
        """Append encoded fields, with their tags."""
        out = self._open()
        out += data

    def _append(self, number: int, wire_type: int, value: bytes) -> None:
        _check_number(number)
        out = self._open()
        out += wire.tag(number, wire_type)
        out += value

    def nested(self, number: int, writer: type[W], /) -> W:
        """Open a nested message, which ends with its block or at the outer message's next field."""
        _check_number(number)
        ended = self._ended
        out = self._open()
        out += wire.tag(number, wire.DELIMITED)
        out += bytes(wire.SIZE_FIELD_BYTES)
        child = writer.__new__(writer)
        child._start(out, len(out))
        child._ended = ended
        if not ended:
            self._child = child
        return child

    def finalize(self) -> None:
        """End this message and its children. No effect if it has ended.

        Raises:
            LocalProtocolError: the message is too large, or doesn't fit into its destination.
        """
        if self._ended:
            return
        chain: list[MessageWriter] = []
        message: MessageWriter | None = self
        while message is not None:
            chain.append(message)
            message = message._child
        for each in reversed(chain):
            if not each._ended:
                each._end()

    def _end(self) -> None:
        """End a message whose children have ended."""
        self._child = None
        self._size = len(self._out) - self._begin
        self._ended = True
        if self._size > wire.MAX_SIZE:
            raise LocalProtocolError(
                f"a message of {self._size} bytes: at most {wire.MAX_SIZE} fit"
            )
        if self._begin:
            self._write_length()
        elif self._destination is not None:
            self._hand_over(self._destination)

    def _write_length(self) -> None:
        start = self._begin - wire.SIZE_FIELD_BYTES
        if self._size <= _MAX_COMPACT_SIZE:
            self._out[start] = self._size
            del self._out[start + 1 : self._begin]
        else:
            self._out[start : self._begin] = wire.redundant_varint(self._size)

    def _hand_over(self, destination: Any) -> None:
        if not isinstance(destination, memoryview):
            _write_all(destination, bytes(self._out))
            return
        room = len(destination)
        destination[: self._size] = self._out[:room]
        destination.release()
        if self._size > room:
            lost = self._size - room
            raise LocalProtocolError(f"{lost} bytes of the message didn't fit into its destination")

    def finish(self) -> bytes:
        """End a root message and return its bytes.

        Raises:
            LocalProtocolError: the message has ended already, is nested, or has another
                destination.
        """
        if self._begin or self._destination is not None:
            raise LocalProtocolError(
                "only the outermost message has bytes of its own, and only one that"
                " isn't written elsewhere: call finalize()"
            )
        if self._ended:
            raise LocalProtocolError("the message has ended: finish() it once")
        self.finalize()
        return bytes(self._out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: object = None, *_exc_info: object) -> None:
        try:
            self.finalize()
        except Exception:
            # An exception of the block takes precedence.
            if exc_type is None:
                raise


def _write_all(file: Any, data: bytes) -> None:
    """Write all data; a `write` that returns no number is assumed to write everything."""
    while data:
        taken = file.write(data)
        if not isinstance(taken, int):
            return
        if not 0 < taken <= len(data):
            raise OSError(f"write() reported that it took {taken} bytes of {len(data)}")
        data = data[taken:]


def _check_number(number: int) -> None:
    if not 1 <= number <= _MAX_NUMBER:
        raise ValueError(f"number must be from 1 to {_MAX_NUMBER}, not {number}")


def make_writer_class(
    name: str, methods: list[WriterMethod], namespace: dict[str, Any], /
) -> type[MessageWriter]:
    """Create a subclass of MessageWriter."""
    return type(name, (MessageWriter,), {row[0]: python_method(row) for row in methods} | namespace)
