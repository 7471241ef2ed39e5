"""The interned data of a native heap's dumps: files of code, functions, frames and stacks.

    address --mapped code--> file and place in it --ELF--> address in the file, function

A frame's `rel_pc` is the address in the terms of its file, so that another tool can find source
lines by the build id. A function without a symbol is named by its file and this address.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import NamedTuple, Protocol

from stretto._native import ElfFile
from stretto.protos.trace import Callstack, Frame, InternedData, InternedString, Mapping

ElfFiles = dict[str, ElfFile | None]
"""The files of code that are known, by path; None: it can't be read."""


class Addresses(Protocol):
    """The stacks of a sampler, as addresses."""

    def addresses(self, stack: int, /) -> tuple[int, ...]:
        """Return the addresses of a stack, the innermost call first; empty if there is none."""

    def code(self) -> str:
        """Return the lines of /proc/PID/maps about code."""


class _Code(NamedTuple):
    """A part of memory with code of a file."""

    start: int
    end: int
    offset: int
    path: str


_MAX_ADDRESS = 1 << 63
"""So that no sum exceeds 64 bits. Linux has its own code, that of vsyscalls, above."""
_UNKNOWN = _Code(0, 1 << 64, 0, "[unknown code]")


class _Numbers:
    """Strings by number.

    Attributes:
        new: Those that no packet has defined.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}
        self.new: list[InternedString] = []

    def number(self, text: bytes) -> int:
        number = self._known.get(text)
        if number is None:
            number = self._known[text] = len(self._known) + 1
            self.new.append(InternedString(iid=number, str=text))
        return number

    def take(self) -> list[InternedString]:
        new, self.new = self.new, []
        return new


class NativeStacks:
    """The stacks that a packet sequence has defined.

    Args:
        source: Has the stacks.
        elf_files: What is known already; other files are added.
    """

    def __init__(self, source: Addresses, elf_files: ElfFiles) -> None:
        self._source = source
        self._elf_files = elf_files
        self._new = InternedData()
        self._code: list[_Code] = []
        self._mappings: dict[_Code, int] = {}
        self._frames: dict[int, int] = {}
        self._stacks: dict[int, int] = {}
        self._shown: dict[tuple[int, ...], int] = {}
        self._functions, self._paths, self._build_ids = _Numbers(), _Numbers(), _Numbers()

    def number(self, stack: int) -> int:
        """Return the number of a stack in the packets; `take` has its definition, if it is new."""
        known = self._stacks.get(stack)
        if known is None:
            addresses = self._source.addresses(stack)
            frames = tuple(map(self._frame, reversed(addresses))) or (self._other_stacks(),)
            known = self._stacks[stack] = self._shown.setdefault(frames, len(self._shown) + 1)
            if known == len(self._shown):
                self._new.callstacks.append(Callstack(iid=known, frame_ids=frames))
        return known

    def take(self) -> InternedData | None:
        """Return what is new since the last call; None if nothing is."""
        new, self._new = self._new, InternedData()
        new.function_names = self._functions.take()
        new.mapping_paths, new.build_ids = self._paths.take(), self._build_ids.take()
        return new if new.frames or new.callstacks else None

    def _frame(self, address: int) -> int:
        known = self._frames.get(address)
        return self._add_frame(address) if known is None else known

    def _add_frame(self, address: int) -> int:
        code = self._code_at(address)
        elf = self._elf(code.path)
        offset = address - code.start + code.offset
        place = elf.address(offset) if elf is not None else offset
        # The address is that of the next instruction, which may belong to the next function.
        name = elf.symbol(max(0, place - 1)) if elf is not None else None
        name = name or os.fsencode(f"{os.path.basename(code.path)}+0x{place:x}")
        return self._append(address, name, code, place)

    def _other_stacks(self) -> int:
        return self._frames.get(0) or self._append(0, b"[other stacks]", _UNKNOWN, 0)

    def _append(self, address: int, name: bytes, code: _Code, place: int) -> int:
        number = self._frames[address] = len(self._frames) + 1
        self._new.frames.append(
            Frame(
                iid=number,
                function_name_id=self._functions.number(name),
                mapping_id=self._mapping(code),
                rel_pc=place,
            )
        )
        return number

    def _code_at(self, address: int) -> _Code:
        return self._find(address) or self._find(address, again=True) or _UNKNOWN

    def _find(self, address: int, *, again: bool = False) -> _Code | None:
        if again:
            self._code = sorted(_parse(self._source.code()))
        index = bisect_right(self._code, address, key=lambda code: code.start) - 1
        code = self._code[index] if index >= 0 else None
        return code if code is not None and address < code.end else None

    def _elf(self, path: str) -> ElfFile | None:
        """Return the file; None if it can't be read."""
        if path not in self._elf_files:
            try:
                self._elf_files[path] = ElfFile(path)
            except (OSError, ValueError):
                self._elf_files[path] = None
        return self._elf_files[path]

    def _mapping(self, code: _Code) -> int:
        number = self._mappings.get(code)
        if number is None:
            number = self._mappings[code] = len(self._mappings) + 1
            elf = self._elf(code.path)
            path = self._paths.number(os.fsencode(code.path))
            mapping = Mapping(
                iid=number,
                exact_offset=code.offset,
                start_offset=code.offset,
                start=code.start,
                end=min(code.end, (1 << 64) - 1),
                load_bias=elf.load_bias if elf is not None else 0,
                path_string_ids=[path],
            )
            if elf is not None and elf.build_id:
                mapping.build_id = self._build_ids.number(elf.build_id)
            self._new.mappings.append(mapping)
        return number


def _parse(lines: str) -> list[_Code]:
    """Return the code that the lines of /proc/PID/maps name; damaged lines are left out."""
    found = []
    for line in lines.splitlines():
        words = line.split(maxsplit=5)
        try:
            start, end = (int(word, 16) for word in words[0].split("-"))
            offset = int(words[2], 16)
            path = words[5] if len(words) > 5 else "[anonymous code]"
            if 0 <= start < end <= _MAX_ADDRESS and 0 <= offset <= _MAX_ADDRESS:
                found.append(_Code(start, end, offset, path.removesuffix(" (deleted)")))
        except (ValueError, IndexError):
            continue
    return found
