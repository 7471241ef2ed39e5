"""Reads Python objects of another process: strings and code objects.

The process runs meanwhile, so an object may change or be freed while it is read. All sizes are
bounded: a wrong value leads to a wrong text or an error, and to no other damage.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from stretto._native import read_process_memory

if TYPE_CHECKING:
    from stretto.profilers.sampling.layout import Layout

_MAX_TEXT = 4096
_WIDTHS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}


class CodeName(NamedTuple):
    """The name of a code object, and its file."""

    function: str
    """The qualified name: `Shop.order`, `main.<locals>.inner`."""
    filename: str


class ObjectReader:
    """Reads objects of one process, by their addresses."""

    def __init__(self, pid: int, layout: Layout) -> None:
        self._pid = pid
        self._layout = layout

    def bytes_at(self, address: int, size: int) -> bytes:
        """Return memory of the process.

        Raises:
            OSError: The process has no such memory, or has ended.
        """
        return read_process_memory(self._pid, address, size)

    def word(self, address: int) -> int:
        """Return a pointer, or another number of 64 bits."""
        return int.from_bytes(self.bytes_at(address, 8), "little")

    def text(self, address: int) -> str:
        """Return a `str` of the process; its first 4,096 characters.

        Raises:
            OSError: The memory can't be read.
            ValueError: The object is no string.
        """
        layout = self._layout
        head = self.bytes_at(address, layout["text_compact"])
        (length,) = struct.unpack_from("<q", head, layout["text_length"])
        (state,) = struct.unpack_from("<I", head, layout["text_state"])
        kind, is_compact, is_ascii = state >> 2 & 7, state >> 5 & 1, state >> 6 & 1
        if not is_compact or kind not in _WIDTHS or length < 0:
            raise ValueError("no string")
        data = address + layout["text_ascii" if is_ascii else "text_compact"]
        raw = self.bytes_at(data, min(length, _MAX_TEXT) * kind)
        return raw.decode(_WIDTHS[kind], "replace")

    def identity(self, code: int) -> bytes:
        """Return bytes of a code object that change if its address gets another code object."""
        return self.bytes_at(code + self._layout["code_filename"], 32)

    def code_name(self, code: int) -> CodeName:
        """Return the name of a code object; parts that can't be read are `?`."""
        return CodeName(
            self._text_of(code + self._layout["code_qualname"]),
            self._text_of(code + self._layout["code_filename"]),
        )

    def _text_of(self, pointer: int) -> str:
        try:
            return self.text(self.word(pointer))
        except (OSError, ValueError):
            return "?"
