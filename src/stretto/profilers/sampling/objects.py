"""Reads Python objects of another process: strings, numbers, code objects, dicts, attributes.

The process runs meanwhile, so an object may change or be freed while it is read. All sizes are
bounded: a wrong value leads to a wrong text or an error, and to no other damage.
"""

from __future__ import annotations

import struct
from collections import namedtuple

from stretto._native import read_process_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.profilers.sampling.layout import Layout

_MAX_TEXT = 4096
_MAX_ENTRIES = 1 << 15
_MAX_MEMBERS = 1 << 17
_MAX_BASES = 16
_MAX_TYPE_NAME = 32
_MANAGED_DICT = 1 << 4  # Py_TPFLAGS_MANAGED_DICT
_MODULE_DICT = 16
_TYPE, _TYPE_NAME, _TYPE_BASE = 8, 24, 256
_WIDTHS = {1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}


_CodeName = namedtuple("_CodeName", ("function", "filename", "first_line"), defaults=(0,))  # noqa: PYI024 - loads no typing


class CodeName(_CodeName):
    """The name of a code object, and its file."""

    __slots__ = ()

    function: str
    """The qualified name: `Shop.order`, `main.<locals>.inner`."""
    filename: str
    first_line: int
    """The line of its `def`; 0 if it isn't known."""


class ObjectReader:
    """Reads objects of one process, by their addresses."""

    def __init__(self, pid: int, layout: Layout) -> None:
        self._pid = pid
        self._layout = layout
        self._code_type = -1  # The address of the type of code objects; -1: not known yet.

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

    def integer(self, address: int) -> int:
        """Return an `int` from 1 to 2**30 - 1.

        Raises:
            OSError: The memory can't be read.
            ValueError: The number is another one.
        """
        size, digit = struct.unpack("<qI", self.bytes_at(address + 16, 12))
        if self._layout.version >= (3, 12):  # Two bits are the sign, and one says "immortal".
            size = 0 if size & 3 else size >> 3
        if size != 1:
            raise ValueError("no small number")
        return int(digit)

    def item(self, dict_address: int, key: str) -> int:
        """Return the address of a dict's value for a key that is a string.

        Raises:
            OSError: The memory can't be read.
            ValueError: There is no such key.
        """
        for name, value in self.items(dict_address):
            if self.text(name) == key:
                return value
        raise ValueError(f"no {key}")

    def items(self, dict_address: int) -> list[tuple[int, int]]:
        """Return the addresses of the keys and values of a dict.

        Raises:
            OSError: The memory can't be read.
            ValueError: The object is no dict.
        """
        keys, values = struct.unpack("<QQ", self.bytes_at(dict_address + 32, 16))
        if values and self._layout.version >= (3, 13):
            values += 8
        return self._entries(keys, values)

    def _entries(self, keys: int, values: int) -> list[tuple[int, int]]:
        """Return the entries of a table of keys; `values` is a separate array, or 0."""
        head = self.bytes_at(keys, 32)
        log2_index_bytes, kind = head[9], head[10]
        (count,) = struct.unpack_from("<q", head, 24)
        if not 0 <= count <= _MAX_ENTRIES or log2_index_bytes > 20 or kind > 2:
            raise ValueError("no dict")
        width = 2 if kind else 3  # Keys of any type have their hash first.
        raw = self.bytes_at(keys + 32 + (1 << log2_index_bytes), count * width * 8)
        words = struct.unpack(f"<{count * width}Q", raw)
        found = words[width - 1 :: width]
        if values:
            found = struct.unpack(f"<{count}Q", self.bytes_at(values, count * 8))
        return [pair for pair in zip(words[width - 2 :: width], found, strict=True) if all(pair)]

    def attributes(self, address: int) -> dict[str, int]:
        """Return the addresses of the attributes of an object, whose class is written in Python.

        Raises:
            OSError: The memory can't be read.
            ValueError: The object has no attributes that can be read.
        """
        kind = self.word(address + 8)
        if not self.word(kind + 168) & _MANAGED_DICT:
            raise ValueError("no object with attributes")
        found, values = self.word(address - 24), 0
        if self._layout.version == (3, 11):
            values = self.word(address - 32)
        elif self._layout.version == (3, 12):
            found, values = (0, found + 1) if found & 1 else (found, 0)
        elif not found:
            values = address + self.word(kind + 32) + 8
        keys = self.word(kind + self._layout["type_cached_keys"])
        pairs = self._entries(keys, values) if values else self.items(found)
        return {self.text(name): value for name, value in pairs}

    def module(self, modules: int, name: str) -> int:
        """Return the address of the dict of a module, which is in the dict `sys.modules`.

        Raises:
            OSError: The memory can't be read.
            ValueError: There is no such module.
        """
        return self.word(self.item(modules, name) + _MODULE_DICT)

    def names(self, dict_address: int) -> dict[str, int]:
        """Return the addresses of the values of a dict whose keys are strings.

        Raises:
            OSError: The memory can't be read.
            ValueError: The object is no such dict.
        """
        return {self.text(name): value for name, value in self.items(dict_address)}

    def members(self, address: int) -> list[int]:
        """Return the addresses of the members of a set.

        Raises:
            OSError: The memory can't be read.
            ValueError: The object is no set, or one with more than 100,000 members.
        """
        mask = self.word(address + self._layout["set_mask"])
        table = self.word(address + self._layout["set_table"])
        if mask >= _MAX_MEMBERS:
            raise ValueError("no set")
        entries = struct.iter_unpack("<Qq", self.bytes_at(table, 16 * (mask + 1)))
        return [key for key, digest in entries if key and digest != -1]

    def type_name(self, address: int) -> str:
        """Return the name of an object's type; `functools.partial` for a type written in C.

        Raises:
            OSError: The memory can't be read.
        """
        return self._name_of_type(self.word(address + _TYPE))

    def type_names(self, address: int) -> list[str]:
        """Return the names of an object's type and of its bases.

        Raises:
            OSError: The memory can't be read.
        """
        found: list[str] = []
        kind = self.word(address + _TYPE)
        while kind and len(found) < _MAX_BASES:
            found.append(self._name_of_type(kind))
            kind = self.word(kind + _TYPE_BASE)
        return found

    def _name_of_type(self, kind: int) -> str:
        raw = self.bytes_at(self.word(kind + _TYPE_NAME), _MAX_TYPE_NAME)
        return raw.partition(b"\0")[0].decode(errors="replace")

    def identity(self, code: int) -> bytes:
        """Return bytes of a code object that change if its address gets another code object."""
        return self.bytes_at(code + self._layout["code_filename"], 32)

    def code_name(self, code: int) -> CodeName:
        """Return the name of a code object; parts that can't be read are `?`.

        The code of a module is freed after its import, and its memory may be another object's. So
        the type is looked at last.
        """
        name = CodeName(
            self._text_of(code + self._layout["code_qualname"]),
            self._text_of(code + self._layout["code_filename"]),
            self.first_line(code),
        )
        return name if self._is_code(code) else CodeName("?", "?")

    def _is_code(self, address: int) -> bool:
        try:
            kind = self.word(address + _TYPE)
            if kind != self._code_type and self._name_of_type(kind) == "code":
                self._code_type = kind
        except (OSError, ValueError):  # A pointer that is no address is a ValueError.
            return False
        return kind == self._code_type

    def first_line(self, code: int) -> int:
        """Return the first line of a code object; 0 if it can't be read."""
        try:
            raw = self.bytes_at(code + self._layout["code_first_line"], 4)
        except OSError:
            return 0
        return int.from_bytes(raw, "little")

    def _text_of(self, pointer: int) -> str:
        try:
            return self.text(self.word(pointer))
        except (OSError, ValueError):
            return "?"
