"""Reads the file in which the preloaded library keeps the samples of a process's malloc.

`native/probes/heap_file.h` describes it. The process may write into its file while it is read, may
have been killed while it wrote, and may be hostile: so all is copied first, and then checked.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from stretto.profilers.heap.native_stacks import NativeStacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.profilers.heap.heap_sequence import Row
    from stretto.profilers.heap.native_stacks import ElfFiles

MAGIC = b"STHEAP01"
STACKS = 1 << 16
ADDRESSES = 1 << 21
OTHER_STACKS = 1
MAX_DEPTH = 128

_HEADER = struct.Struct("<8s2I15Q")
_COMMAND_SIZE = 1024
_TOTALS = struct.Struct("<7QB7x")
_STACK = struct.Struct("<2I")
_CODE_AT, _CODE_SIZE = 4096, 1 << 20
_TOTALS_AT = _CODE_AT + _CODE_SIZE
_STACKS_AT = _TOTALS_AT + STACKS * _TOTALS.size
_ADDRESSES_AT = _STACKS_AT + STACKS * _STACK.size
FILE_SIZE = _ADDRESSES_AT + ADDRESSES * 8
_TRIES = 20
_MAX_PID = (1 << 31) - 1
_MAX_TOTAL = 1 << 47
"""The most bytes of a stack: the sum of all stacks has 64 bits."""


class _Header(NamedTuple):
    magic: bytes
    pid: int
    ppid: int
    start_ns: int
    first_interval: int
    changes: int
    interval: int
    live: int
    max: int
    max_change: int
    stacks: int
    addresses: int
    code_size: int
    live_full: int
    out_of_memory: int
    other_stacks: int
    from_startup: int
    command_size: int


class HeapFile:
    """The samples of one process's malloc.

    Args:
        path: The file.
        elf_files: What is known of files with code; others are added.

    Raises:
        OSError: The file can't be read.
        ValueError: It is no such file, or not yet complete.

    Attributes:
        pid: The process.
        ppid: Its parent.
        command: Its command line.
    """

    name = "libc.malloc"

    def __init__(self, path: str, elf_files: ElfFiles) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._elf_files = elf_files
        self._last: dict[int, Row] = {}
        try:
            if os.fstat(self._fd).st_size != FILE_SIZE:
                raise ValueError("not a heap file")
            self._header = self._read_header()
        except ValueError:
            self.close()
            raise
        self.pid, self.ppid = self._header.pid, self._header.ppid
        self.start_ns = self._header.start_ns
        self.from_startup = bool(self._header.from_startup)
        command = self._read(min(self._header.command_size, _COMMAND_SIZE), _HEADER.size)
        words = command.rstrip(b"\0").split(b"\0")
        self.command = [word.decode(errors="replace") for word in words]

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _read(self, size: int, place: int) -> bytes:
        data = os.pread(self._fd, size, place)
        if len(data) != size:
            raise ValueError("the file was truncated")
        return data

    def _read_header(self) -> _Header:
        header = _Header._make(_HEADER.unpack(self._read(_HEADER.size, 0)))
        if (
            header.magic != MAGIC
            or not OTHER_STACKS <= header.stacks < STACKS
            or header.addresses > ADDRESSES
            or header.code_size > _CODE_SIZE
            or max(header.pid, header.ppid) > _MAX_PID
        ):
            raise ValueError("not a heap file")
        return header

    @property
    def stats(self) -> dict[str, int]:
        """The numbers of a dump, as of the last `rows`."""
        header = self._header
        slower = max(1, header.interval) // max(1, header.first_interval)
        return {
            "interval": header.interval,
            "slower": slower.bit_length() - 1 if slower else 0,
            "live_full": header.live_full,
            "out_of_memory": header.out_of_memory,
        }

    def rows(self, *, everything: bool) -> Sequence[Row]:
        """Return the totals of the stacks that have changed since the last call; or of all."""
        try:
            found = {row[0]: row for row in self._copy_rows()}
        except ValueError:  # The process has damaged its file: what was read before is kept.
            found = self._last
        changed = [row for stack, row in found.items() if self._last.get(stack) != row]
        self._last = found
        return [*found.values()] if everything else changed

    def _copy_rows(self) -> list[Row]:
        for _ in range(_TRIES):
            self._header = header = self._read_header()
            size = (header.stacks + 1) * _TOTALS.size
            totals = self._read(size, _TOTALS_AT)
            if header.changes % 2 == 0 and self._read_header().changes == header.changes:
                break
        rows = enumerate(_TOTALS.iter_unpack(totals))
        return [_row(stack, numbers, header.max_change) for stack, numbers in rows if numbers[1]]

    def new_stacks(self) -> NativeStacks:
        """Return the stacks of a sequence that has defined none."""
        return NativeStacks(self, self._elf_files)

    def addresses(self, stack: int) -> tuple[int, ...]:
        """Return the addresses of a stack, the innermost call first; empty if there is none."""
        try:
            place = _STACKS_AT + stack * _STACK.size
            first, depth = _STACK.unpack(self._read(_STACK.size, place))
            if depth > MAX_DEPTH or first + depth > ADDRESSES:
                return ()
            return struct.unpack(f"<{depth}Q", self._read(depth * 8, _ADDRESSES_AT + first * 8))
        except ValueError:
            return ()

    def code(self) -> str:
        """Return the lines of /proc/PID/maps about code that is or was mapped."""
        code = os.pread(self._fd, min(self._header.code_size, _CODE_SIZE), _CODE_AT)
        return code.decode(errors="surrogateescape")


def _row(stack: int, numbers: tuple[int, ...], max_change: int) -> Row:
    *totals, changed, _ = numbers
    allocated, samples, freed, freed_samples, at_max, at_max_samples = (
        min(total, _MAX_TOTAL) for total in totals
    )
    freed, freed_samples = min(freed, allocated), min(freed_samples, samples)
    if changed <= max_change:  # What is live has been live at the maximum, too.
        at_max, at_max_samples = allocated - freed, samples - freed_samples
    return stack, allocated, freed, samples, freed_samples, at_max, at_max_samples
