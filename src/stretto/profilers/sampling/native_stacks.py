"""Reads the C functions of threads of a running process that wait, for `stretto dump --native`.

    /proc/PID/task/TID/syscall ─> program counter, stack pointer
    /proc/PID/maps ─> files in memory ─> program headers ─> .eh_frame_hdr ─> callers
                                      ─> symbols of the files ─> names

The kernel tells these registers only of a thread that waits in a system call: others have no C
functions here. No debugger's rights are used to stop a thread. The process runs meanwhile, so
what is read is checked, and a thread that has continued is left out.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from stretto import _native
from stretto.base import proc_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_LOAD, _EH_FRAME = 1, 0x6474E550  # PT_LOAD, PT_GNU_EH_FRAME
_MAX_SEGMENTS = 64
_VDSO = "[vdso]"


class NativeFrame(NamedTuple):
    """A call of a C function."""

    function: str
    """Its name, or its address in the file if the file has no name for it."""
    filename: str


class _File(NamedTuple):
    """A file in memory."""

    path: str
    bias: int
    """Addresses in memory minus addresses in the file."""
    eh_frame_header: int


class _Mapping(NamedTuple):
    start: int
    end: int
    file: _File


class NativeStacks:
    """The stacks of one process.

    Raises:
        OSError: The process has ended, or can't be read.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._waits = {tid: self._wait_of(tid) for tid in _threads(pid)}
        self._code = list(self._read_maps())
        self._ranges = [(each.start, each.end, each.file.eh_frame_header) for each in self._code]
        self._symbols: dict[str, _native.ElfFile | None] = {}

    def of_thread(self, tid: int) -> list[NativeFrame] | None:
        """Return the calls of a thread, the innermost first.

        Returns:
            As many as are found; None if the thread runs, or has run since this object was made.
        """
        wait = self._waits.get(tid)
        if wait is None:
            return None
        *_, sp, pc = wait
        counters = _native.native_stack(self._pid, self._ranges, int(pc, 16), int(sp, 16))
        frames = [self._frame(counter - (index > 0)) for index, counter in enumerate(counters)]
        return frames if self._wait_of(tid) == wait else None

    def _wait_of(self, tid: int) -> list[str] | None:
        """Return the numbers of a thread's system call, which end with sp and pc."""
        words = proc_files.read(self._pid, f"task/{tid}/syscall").decode().split()
        return words if len(words) >= 3 else None

    def _read_maps(self) -> Iterator[_Mapping]:
        """Yield the code in memory."""
        file, path = None, ""
        for line in proc_files.read(self._pid, "maps").decode(errors="surrogateescape").split("\n"):
            fields = line.split(maxsplit=5)
            if len(fields) < 6:
                continue
            start, end = (int(each, 16) for each in fields[0].split("-"))
            if fields[5] != path or not int(fields[2], 16):
                path, file = fields[5], None
                if path.startswith("/") or path == _VDSO:
                    file = self._read_file(path, start)
            if file is not None and "x" in fields[1]:
                yield _Mapping(start, end, file)

    def _read_file(self, path: str, start: int) -> _File | None:
        """Read the program headers of a file, which begins at `start` in memory."""
        try:
            header = _HEADER.unpack(self._bytes(start, _HEADER.size))
            if header[0][:6] != b"\x7fELF\x02\x01" or header[10] > _MAX_SEGMENTS:
                return None
            raw = self._bytes(start + header[5], header[10] * _SEGMENT.size)
        except OSError:
            return None
        segments = list(_SEGMENT.iter_unpack(raw))
        loaded = [address - offset for kind, _, offset, address, *_ in segments if kind == _LOAD]
        tables = [segment[3] for segment in segments if segment[0] == _EH_FRAME]
        if not loaded or not tables:
            return None
        bias = start - loaded[0]
        return _File(path, bias, (bias + tables[0]) & (1 << 64) - 1)

    def _bytes(self, address: int, size: int) -> bytes:
        return _native.read_process_memory(self._pid, address, size)

    def _frame(self, counter: int) -> NativeFrame:
        for start, end, file in self._code:
            if start <= counter < end:
                address = counter - file.bias
                return NativeFrame(self._name(file.path, address), file.path)
        return NativeFrame(f"{counter:#x}", "?")

    def _name(self, path: str, address: int) -> str:
        if path not in self._symbols:
            try:
                self._symbols[path] = _native.ElfFile(f"/proc/{self._pid}/root{path}")
            except (OSError, ValueError):
                self._symbols[path] = None
        elf = self._symbols[path]
        name = elf.symbol(address) if elf is not None and address >= 0 else None
        return f"{address:#x}" if name is None else name.decode(errors="replace")


def _threads(pid: int) -> Iterable[int]:
    return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
