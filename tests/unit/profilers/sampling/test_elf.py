"""Symbols of ELF files: those of this interpreter, and damaged files."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto import _native
from stretto.profilers.sampling.elf import ElfFile

FILE = Path(_native.__file__).read_bytes()


def test_symbol_has_its_address_in_the_file() -> None:
    elf = ElfFile(FILE)
    address = elf.symbols("PyInit__native", "no_such_symbol")["PyInit__native"]
    loaded = ctypes.CDLL(_native.__file__)
    function = ctypes.cast(loaded.PyInit__native, ctypes.c_void_p).value
    assert function is not None
    assert (function - address + elf.first_address) % 4096 == 0


def test_section_has_its_address() -> None:
    elf = ElfFile(FILE)
    assert elf.section(".text")
    assert elf.section(".no_such_section") is None


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n" * 20, FILE[:100]])
def test_file_that_is_not_a_whole_elf_file_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="ELF"):
        ElfFile(content)


@given(st.data())
def test_damaged_file_gives_an_error_or_an_answer(data: st.DataObject) -> None:
    content = bytearray(FILE)
    for at in data.draw(st.lists(st.integers(0, 63), max_size=8)):
        content[at] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        elf = ElfFile(bytes(content))
        elf.symbols("PyInit__native")
        elf.section(".text")
