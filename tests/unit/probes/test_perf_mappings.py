"""The mappings of processes, and their files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stretto.probes.machine import Machine
from stretto.probes.perf_mappings import AddressSpaces, Mapping
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.probing import write_files

MAPS = """\
1000-2000 r--p 00000000 08:01 5 /bin/shop
2000-3000 r-xp 00001000 08:01 5 /bin/shop
7000-8000 r-xp 00000000 00:00 0 [vdso]
9000-a000 rw-p 00000000 00:00 0
"""


def spaces(root: Path | str = "/") -> AddressSpaces:
    runner = FakeTaskRunner(FakeClock())
    return AddressSpaces(Machine(runner, lambda f: f(), runner.clock, str(root)))


def path(found: Mapping | None) -> bytes | None:
    return found.path if found is not None else None


def test_maps_are_read_at_the_first_look(tmp_path: Path) -> None:
    write_files(tmp_path, {"proc/5/maps": MAPS})
    known = spaces(tmp_path)
    assert path(known.find(5, 0x2FFF)) == b"/bin/shop"
    assert path(known.find(5, 0x7000)) == b"[vdso]"
    for address in (0, 0x1000, 0x3000, 0x9000):
        assert known.find(5, address) is None
    (tmp_path / "proc/5/maps").write_text("0-ffff r-xp 00000000 08:01 5 /other\n")
    assert known.find(5, 0x3000) is None
    known.forget()
    known.begin()
    assert path(known.find(5, 0x3000)) == b"/other"


def test_programs_that_are_run_have_the_mappings_of_their_events(tmp_path: Path) -> None:
    known = spaces(tmp_path)
    assert not known.map(5, Mapping(0x1000, 0x2000, 0, b"/unknown process"))
    known.run(5)
    assert not known.map(5, Mapping(0x1000, 0x3000, 0, b"/a"))
    assert not known.map(5, Mapping(0x3000, 0x4000, 0, b"/b"))
    known.fork(6, 5)
    assert known.map(5, Mapping(0x2000, 0x2800, 0, b"/c"))  # Replaces /a.
    assert path(known.find(5, 0x2000)) == b"/c"
    assert known.find(5, 0x1000) is None
    assert path(known.find(6, 0x2000)) == b"/a"
    known.end(6)
    assert known.find(6, 0x2000) is None


def test_functions_of_a_mapped_file_have_names() -> None:
    known = spaces()
    known.run(os.getpid())
    library = next(
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "libc.so" in line or "musl" in line
    )
    known.map(os.getpid(), Mapping(0x10000, 0x10000 + (1 << 24), 0, library.encode()))
    found = known.find(os.getpid(), 0x10000)
    assert found is not None
    assert found.elf is not None
    names = {found.elf.symbol(address) for address in range(0, 1 << 21, 16)}
    assert b"malloc" in names


@pytest.mark.skipif("[vdso]" not in Path("/proc/self/maps").read_text(), reason="no vdso")
def test_code_that_the_kernel_maps_has_names(tmp_path: Path) -> None:
    write_files(tmp_path, {"proc/5/maps": MAPS})
    found = spaces(tmp_path).find(5, 0x7000)
    assert found is not None
    assert found.elf is not None
    names = {found.elf.symbol(address) for address in range(0, 0x4000, 16)}
    assert any(name is not None and b"clock_gettime" in name for name in names)


def test_what_is_no_elf_file_has_no_functions(tmp_path: Path) -> None:
    write_files(tmp_path, {"text": "no program"})
    known = spaces(tmp_path)
    known.run(5)
    for start, name in enumerate((b"/text", b"/missing", b"//anon", b"[heap]", b"/dev/zero"), 1):
        known.map(5, Mapping(start << 12, (start + 1) << 12, 0, name))
        found = known.find(5, start << 12)
        assert found is not None
        assert found.elf is None
