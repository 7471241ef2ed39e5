"""ELF files: the build id, and the functions at places in the file.

    header ──> program headers   PT_LOAD: file offset -> address; PT_NOTE: build id
           └─> section headers   .symtab, or .dynsym without it: address -> name

Only 64-bit little-endian files are read; of others, and of damaged ones, nothing is known. Names
are as in the file: those of C++ and Rust are mangled.

Source: the System V ABI, "Object Files", "Program Loading"; GNU's build id note.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from typing import NamedTuple

_HEADER = struct.Struct("<4sBB10x2xHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOTE = struct.Struct("<III")
_PT_LOAD, _PT_NOTE = 1, 4
_SHT_SYMTAB, _SHT_DYNSYM = 2, 11
_STT_FUNC, _STT_GNU_IFUNC = 2, 10
_NT_GNU_BUILD_ID = 3

MAX_TABLE = 256 << 20
"""Larger tables of symbols aren't read, in bytes."""
MAX_NOTES = 1 << 20


class _Segment(NamedTuple):
    offset: int
    address: int
    size: int


class ElfFile:
    """What is known of a file.

    Args:
        path: The file.

    Attributes:
        build_id: GNU's build id; empty if unknown.
        load_bias: The address of the first code segment minus its offset in the file.
    """

    def __init__(self, path: str) -> None:
        self.build_id = b""
        self.load_bias = 0
        self._segments: list[_Segment] = []
        self._starts: list[int] = []
        self._functions: list[tuple[int, int]] = []  # The end, and the place of the name.
        self._names = b""
        try:
            with open(path, "rb", buffering=0) as file:
                self._read(file.fileno())
        except (OSError, OverflowError, struct.error, IndexError, ValueError):
            pass

    def address(self, offset: int) -> int:
        """Return the address in the file's own terms of a place in the file."""
        for segment in self._segments:
            if segment.offset <= offset < segment.offset + segment.size:
                return offset - segment.offset + segment.address
        return offset

    def function(self, address: int) -> str:
        """Return the name of the function at an address; empty if unknown."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return ""
        end, place = self._functions[index]
        if address >= end:
            return ""
        return self._names[place : self._names.index(b"\0", place)].decode(errors="replace")

    def _read(self, fd: int) -> None:
        header = _HEADER.unpack(os.pread(fd, _HEADER.size, 0))
        if header[:3] != (b"\x7fELF", 2, 1):
            return
        programs, sections = header[6:8]
        program_count, section_count = header[11], header[13]
        for program in _PROGRAM.iter_unpack(os.pread(fd, _PROGRAM.size * program_count, programs)):
            self._add_segment(fd, program)
        table = [*_SECTION.iter_unpack(os.pread(fd, _SECTION.size * section_count, sections))]
        kinds = {section[1]: section for section in table}
        symbols = kinds.get(_SHT_SYMTAB) or kinds.get(_SHT_DYNSYM)
        if symbols is not None:
            self._read_symbols(fd, symbols, table[symbols[6]])

    def _add_segment(self, fd: int, program: tuple[int, ...]) -> None:
        kind, flags, offset, address, _, size, _, _ = program
        if kind == _PT_LOAD:
            self._segments.append(_Segment(offset, address, size))
            if flags & 1:
                self.load_bias = address - offset
        elif kind == _PT_NOTE:
            self._read_notes(os.pread(fd, min(size, MAX_NOTES), offset))

    def _read_notes(self, notes: bytes) -> None:
        at = 0
        while at + _NOTE.size <= len(notes):
            name_size, size, kind = _NOTE.unpack_from(notes, at)
            name = at + _NOTE.size
            value = name + (name_size + 3) // 4 * 4
            if kind == _NT_GNU_BUILD_ID and notes[name : name + name_size] == b"GNU\0":
                self.build_id = notes[value : value + size]
            at = value + (size + 3) // 4 * 4

    def _read_symbols(self, fd: int, symbols: tuple[int, ...], names: tuple[int, ...]) -> None:
        if symbols[5] > MAX_TABLE or names[5] > MAX_TABLE:
            return
        self._names = os.pread(fd, names[5], names[4]) + b"\0"
        data = os.pread(fd, symbols[5] // _SYMBOL.size * _SYMBOL.size, symbols[4])
        found = sorted(
            (value, value + (size or 1), name)
            for name, info, _, section, value, size in _SYMBOL.iter_unpack(data)
            if info & 0xF in (_STT_FUNC, _STT_GNU_IFUNC) and section and value
        )
        self._starts = [start for start, _, _ in found]
        self._functions = [(end, name) for _, end, name in found if name < len(self._names)]
        if len(self._functions) != len(self._starts):
            self._starts, self._functions = [], []
