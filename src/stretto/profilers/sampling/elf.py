"""Symbols of ELF files: the addresses of variables in shared libraries and programs.

This module has only what is needed to find CPython's `_PyRuntime`: 64-bit little-endian files, the
symbol tables `.dynsym` and `.symtab`, and the section `.PyRuntime`, which CPython 3.13 and later
have even when symbols are stripped. Source: the System V ABI, chapter 4 (`man 5 elf`).

The files are those that another process has mapped, so all offsets are checked.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap

_SYMBOL_TABLES = (2, 11)  # SHT_SYMTAB, SHT_DYNSYM
_LOAD = 1  # PT_LOAD
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class Section(NamedTuple):
    """A section header: the fields that are used here."""

    name: int
    kind: int
    address: int
    offset: int
    size: int
    link: int


class ElfFile:
    """An ELF file.

    Args:
        image: The contents of the file, as bytes or as a memory map.

    Raises:
        ValueError: The file is no 64-bit little-endian ELF file, or is damaged.
    """

    def __init__(self, image: bytes | mmap) -> None:
        self._image = image
        try:
            header = _HEADER.unpack_from(image, 0)
            if header[0][:6] != b"\x7fELF\x02\x01":
                raise ValueError("no 64-bit little-endian ELF file")
            segments, sections, segment_count = header[5], header[6], header[10]
            count, names = header[12], header[13]
            self._first_address = self._find_first_address(segments, segment_count)
            self._sections = list(self._read_sections(sections, count))
            self._names = self._sections[names] if names < count else None
        except (struct.error, OverflowError) as error:
            raise ValueError(f"damaged ELF file: {error}") from error

    def _read_sections(self, offset: int, count: int) -> Iterator[Section]:
        for index in range(count):
            fields = _SECTION.unpack_from(self._image, offset + index * _SECTION.size)
            name, kind, _, address, start, size, link = fields[:7]
            yield Section(name, kind, address, start, size, link)

    def _find_first_address(self, segments: int, count: int) -> int:
        for index in range(count):
            kind, _, offset, address, *_ = _SEGMENT.unpack_from(
                self._image, segments + index * _SEGMENT.size
            )
            if kind == _LOAD:
                return int(address - offset)
        raise ValueError("an ELF file without a loaded segment")

    @property
    def first_address(self) -> int:
        """The address that the file itself gives to its start."""
        return self._first_address

    def section(self, name: str) -> int | None:
        """Return the address of a section, or None."""
        if self._names is None:
            return None
        for section in self._sections:
            if self._text(self._names, section.name) == name.encode():
                return section.address
        return None

    def symbols(self, *names: str) -> dict[str, int]:
        """Return the addresses of those symbols that the file defines."""
        wanted = {name.encode(): name for name in names}
        found: dict[str, int] = {}
        for table in self._sections:
            if table.kind in _SYMBOL_TABLES and len(found) < len(names):
                self._search(table, wanted, found)
        return found

    def _search(self, table: Section, wanted: dict[bytes, str], found: dict[str, int]) -> None:
        strings = self._sections[table.link] if table.link < len(self._sections) else None
        if strings is None:
            return
        offsets = {offset: name for name in wanted for offset in self._offsets(strings, name)}
        symbols = self._image[table.offset : table.offset + table.size]
        whole = len(symbols) - len(symbols) % _SYMBOL.size
        for name, _, _, section, address, _ in _SYMBOL.iter_unpack(symbols[:whole]):
            if section and name in offsets:
                found.setdefault(wanted[offsets[name]], address)

    def _offsets(self, strings: Section, name: bytes) -> Iterator[int]:
        """Yield the offsets of a name in a table of strings, also at the end of longer strings."""
        text = self._image[strings.offset : strings.offset + strings.size]
        at = text.find(name + b"\0")
        while at >= 0:
            yield at
            at = text.find(name + b"\0", at + 1)

    def _text(self, strings: Section, offset: int) -> bytes:
        start = strings.offset + offset
        end = self._image.find(b"\0", start, strings.offset + strings.size)
        return self._image[start:end] if end >= 0 else b""
