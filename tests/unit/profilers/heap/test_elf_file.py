"""ELF files: names of functions, addresses and build ids; damaged files."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest

from stretto.profilers.heap.elf_file import ElfFile


def place_of(address: int) -> tuple[str, int]:
    """Return the file that an address of this process is mapped from, and the offset in it."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        words = line.split()
        start, end = (int(word, 16) for word in words[0].split("-"))
        if start <= address < end:
            return words[5], address - start + int(words[2], 16)
    raise LookupError(address)


@pytest.mark.parametrize("name", ["qsort_r", "Py_GetVersion"])
def test_function_of_an_address_is_found(name: str) -> None:
    function = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert function is not None
    path, offset = place_of(function)
    elf = ElfFile(path)
    address = elf.address(offset)
    assert name in elf.function(address)
    assert elf.function(address + 1) == elf.function(address)
    assert elf.function(1 << 62) == ""
    assert elf.function(0) == ""


def test_build_id_is_that_of_the_note() -> None:
    path, _ = place_of(ctypes.cast(ctypes.pythonapi.malloc, ctypes.c_void_p).value or 0)
    data = Path(path).read_bytes()
    elf = ElfFile(path)
    if elf.build_id:  # Nearly all C libraries have one.
        assert b"\x03\0\0\0GNU\0" + elf.build_id in data


def test_of_damaged_files_nothing_is_known(tmp_path: Path) -> None:
    whole = Path(sys.executable).resolve().read_bytes()[: 1 << 16]
    for size in (0, 3, 20, 63, 64, 100, 500, 5000):
        path = tmp_path / str(size)
        path.write_bytes(whole[:size])
        assert ElfFile(str(path)).function(0x1000) == ""
    assert ElfFile(str(tmp_path / "none")).build_id == b""
    assert ElfFile("[vdso]").function(1) == ""


def test_any_changed_byte_is_survived(tmp_path: Path) -> None:
    whole = bytearray(Path(sys.executable).resolve().read_bytes()[:4096])
    path = tmp_path / "elf"
    for at in range(0, 1024, 3):
        changed = whole.copy()
        changed[at] ^= 0xFF
        path.write_bytes(changed)
        ElfFile(str(path)).function(0x1000)
