"""The code in the memory of a running process, and the names of its C functions.

    /proc/PID/maps ─> files in memory ─> program headers ─> .eh_frame_hdr, for callers
                                      ─> symbols of the files ─> names

The process runs meanwhile, so what is read is checked.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from stretto import _native
from stretto.base import proc_files

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOP = "_PyEval_EvalFrameDefault"
"""The interpreter's loop. Parts that the compiler has moved have a suffix: `.cold`."""

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


class NativeCode:
    """The code of one process, as it was when this object was made or `update` called.

    Raises:
        OSError: The process has ended, or can't be read.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._symbols: dict[str, _native.ElfFile | None] = {}
        self.update()

    def update(self) -> None:
        """Read the list of files in memory again.

        Raises:
            OSError: The process has ended, or can't be read.
        """
        self._code = list(self._read_maps())
        self.ranges = [(each.start, each.end, each.file.eh_frame_header) for each in self._code]
        """Of each part: its first address, the address after it, its file's `.eh_frame_hdr`."""

    def loops(self) -> list[int]:
        """Return the first addresses of the interpreter's loop and of its parts."""
        with suppress(OSError):
            program = os.readlink(f"/proc/{self._pid}/exe")
            return [
                address + file.bias
                for file in {each.file for each in self._code}
                if file.path == program or "python" in os.path.basename(file.path)
                for address in self._addresses(file.path)
            ]
        return []  # The process has ended.

    def frame(self, address: int) -> NativeFrame:
        """Return the function at an address."""
        for start, end, file in self._code:
            if start <= address < end:
                in_file = address - file.bias
                return NativeFrame(self._name(file.path, in_file), file.path)
        return NativeFrame(f"{address:#x}", "?")

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

    def _name(self, path: str, address: int) -> str:
        elf = self._elf(path)
        name = elf.symbol(address) if elf is not None and address >= 0 else None
        return f"{address:#x}" if name is None else name.decode(errors="replace")

    def _addresses(self, path: str) -> list[int]:
        elf = self._elf(path)
        return [] if elf is None else elf.addresses(LOOP.encode())

    def _elf(self, path: str) -> _native.ElfFile | None:
        if path not in self._symbols:
            try:
                self._symbols[path] = _native.ElfFile(f"/proc/{self._pid}/root{path}")
            except (OSError, ValueError):
                self._symbols[path] = None
        return self._symbols[path]
