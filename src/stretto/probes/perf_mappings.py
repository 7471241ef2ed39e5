"""Which file is mapped where in which process, and the files' functions.

    /proc/PID/maps at the first sample ─┐
    exec, mmap, fork, exit as events ───┴─> AddressSpaces.find(pid, address) ──> Mapping, rel_pc

A process whose exec was seen needs no file of /proc: so one that has ended before its samples are
read has names, too. Files are opened as the process sees them (`/proc/PID/map_files`, `root`), and
by their path if it has ended. Each is read once, natively (native/probes/elf_file.h). The code that
the kernel maps into each process, `[vdso]`, is in no file: that of this process is read.
"""

from __future__ import annotations

import contextlib
import os
import re
from bisect import bisect_right
from operator import attrgetter

from stretto import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.probes.machine import Machine

MAX_PROCESSES, MAX_FILES = 1 << 14, 512
"""When these many are known, all are forgotten."""
_MAPS = re.compile(rb"(?m)^([0-9a-f]+)-([0-9a-f]+) ..x. ([0-9a-f]+) \S+ \S+ *(.*)")
_START = attrgetter("start")
VDSO, VDSO_KEY = b"[vdso]", (-1, -1)


class Mapping:
    """A range of addresses that can be executed, and the file behind it."""

    __slots__ = ("elf", "end", "is_open", "offset", "path", "start")

    def __init__(self, start: int, end: int, offset: int, path: bytes) -> None:
        self.start, self.end, self.offset, self.path = start, end, offset, path
        self.elf: _native.ElfFile | None = None
        self.is_open = False
        """Whether it was tried to open the file."""


class AddressSpaces:
    """The mappings of all processes that have samples.

    Args:
        machine: Has the files.
        unwind_tables: Whether the files' unwind tables are read, too.
    """

    def __init__(self, machine: Machine, *, unwind_tables: bool = False) -> None:
        self._machine = machine
        self._unwind_tables = unwind_tables
        self._spaces: dict[int, list[Mapping]] = {}
        self._files: dict[tuple[int, int], _native.ElfFile | None] = {}
        self._read: set[int] = set()

    def begin(self) -> None:
        """Begin to handle new records: processes without mappings are looked at again."""
        self._read.clear()
        if len(self._spaces) > MAX_PROCESSES:
            self._spaces.clear()

    def forget(self) -> None:
        """Forget all mappings, so that they are read from /proc again."""
        self._spaces.clear()

    def forget_files(self) -> None:
        """Forget all files; mappings that are in use keep theirs."""
        self._files.clear()

    # --- changes

    def run(self, pid: int) -> None:
        """Begin an empty space: the process has run another program."""
        self._spaces[pid] = []

    def fork(self, pid: int, parent: int) -> None:
        """Give a new process the mappings of its parent, if they are known."""
        if (mappings := self._spaces.get(parent)) is not None:
            self._spaces[pid] = mappings[:]

    def end(self, pid: int) -> None:
        """Forget a process."""
        self._spaces.pop(pid, None)

    def map(self, pid: int, mapping: Mapping) -> bool:
        """Add a mapping, instead of those that it covers; return whether there are such."""
        mappings = self._spaces.get(pid)
        if mappings is None:
            return False
        kept = [m for m in mappings if m.end <= mapping.start or m.start >= mapping.end]
        self._spaces[pid] = sorted([*kept, mapping], key=_START)
        return len(kept) < len(mappings)

    # --- look-up

    def find(self, pid: int, address: int) -> Mapping | None:
        """Return the mapping of an address, with its file; None if there is none."""
        if pid not in self._spaces and pid not in self._read:
            self._read.add(pid)
            self._read_maps(pid)
        found = self._known(pid, address)
        if found is not None and not found.is_open:
            found.is_open = True
            found.elf = self._file(pid, found)
        return found

    def _known(self, pid: int, address: int) -> Mapping | None:
        mappings = self._spaces.get(pid, [])
        index = bisect_right(mappings, address, key=_START) - 1
        return mappings[index] if index >= 0 and address < mappings[index].end else None

    def _read_maps(self, pid: int) -> None:
        """Read the mappings of a process, unless it has ended."""
        found = _MAPS.findall(self._machine.read(f"proc/{pid}/maps"))
        if found:
            self._spaces[pid] = [
                Mapping(int(start, 16), int(end, 16), int(offset, 16), path)
                for start, end, offset, path in found
            ]

    def _file(self, pid: int, mapping: Mapping) -> _native.ElfFile | None:
        if mapping.path == VDSO:
            return self._vdso()
        if not mapping.path.startswith(b"/") or mapping.path.startswith((b"//", b"/dev/")):
            return None
        path = mapping.path.decode(errors="surrogateescape")
        names = (
            f"proc/{pid}/map_files/{mapping.start:x}-{mapping.end:x}",
            f"proc/{pid}/root{path}",
            path.lstrip("/"),
        )
        for name in names:
            try:
                return self._opened(self._machine.path(name))
            except (OSError, ValueError):
                continue
        return None

    def _opened(self, path: str) -> _native.ElfFile | None:
        state = os.stat(path)
        key = (state.st_dev, state.st_ino)
        if key not in self._files:
            if len(self._files) >= MAX_FILES:
                self._files.clear()
            self._files[key] = None  # A file that isn't ELF is not read again.
            self._files[key] = _native.ElfFile(path, self._unwind_tables)
        return self._files[key]

    def _vdso(self) -> _native.ElfFile | None:
        """Return the kernel's code in each process, by a copy of this process's."""
        if VDSO_KEY not in self._files:
            self._files[VDSO_KEY] = None
            with contextlib.suppress(OSError, ValueError):
                self._files[VDSO_KEY] = _copied_vdso(self._unwind_tables)
        return self._files[VDSO_KEY]


def _copied_vdso(unwind_tables: bool) -> _native.ElfFile | None:
    with open("/proc/self/maps", "rb") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for first, after, _, path in _MAPS.findall(maps.read()):
            if path == VDSO:
                start = int(first, 16)
                code = os.pread(memory.fileno(), int(after, 16) - start, start)
                return _elf_of(code, unwind_tables)
    return None


def _elf_of(content: bytes, unwind_tables: bool) -> _native.ElfFile:
    copy = os.memfd_create("vdso", os.MFD_CLOEXEC)
    try:
        os.write(copy, content)
        return _native.ElfFile(f"/proc/self/fd/{copy}", unwind_tables)
    finally:
        os.close(copy)
