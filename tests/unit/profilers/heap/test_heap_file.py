"""The file with the samples of a process's malloc: totals, and what a hostile process writes."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from stretto.profilers.heap.heap_file import FILE_SIZE, MAGIC, HeapFile
from stretto.profilers.heap.heap_sequence import HeapSequence, Moment
from stretto.protos.trace import TracePacket

STACKS = 1 << 16
CODE_AT = 4096
TOTALS_AT = CODE_AT + (1 << 20)
STACKS_AT = TOTALS_AT + STACKS * 64
ADDRESSES_AT = STACKS_AT + STACKS * 8
CODE = b"1000-3000 r-xp 00000100 00:00 5 /bin/shop\nnonsense\n"

Write = Callable[[int, bytes], None]


def header(**changed: int) -> bytes:
    numbers = {
        "pid": 77, "ppid": 5, "start": 10, "first_interval": 100, "changes": 8, "interval": 400,
        "live": 0, "max": 0, "max_change": 6, "stacks": 3, "addresses": 2, "code_size": len(CODE),
        "live_full": 1, "out_of_memory": 2, "other_stacks": 0, "from_startup": 1, "command": 7,
    }  # fmt: skip
    numbers.update(changed)
    return struct.pack("<8s2I15Q", MAGIC, *numbers.values()) + b"shop\0-x\0"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "77-1"
    with path.open("wb") as file:
        file.truncate(FILE_SIZE)
        for place, data in {
            0: header(),
            CODE_AT: CODE,
            TOTALS_AT + 2 * 64: struct.pack("<7QB", 900, 3, 300, 1, 40, 2, 7, 1),
            TOTALS_AT + 3 * 64: struct.pack("<7QB", 500, 2, 600, 3, 0, 0, 5, 1),
            STACKS_AT + 2 * 8: struct.pack("<4I", 0, 2, 0, 1),
            ADDRESSES_AT: struct.pack("<2Q", 0x1100, 0x2100),
        }.items():
            file.seek(place)
            file.write(data)
    return path


@pytest.fixture
def write(path: Path) -> Write:
    def write(place: int, data: bytes) -> None:
        with path.open("r+b") as file:
            file.seek(place)
            file.write(data)

    return write


def open_file(path: Path) -> HeapFile:
    return HeapFile(str(path), {})


def test_totals_and_stacks_are_read(path: Path) -> None:
    file = open_file(path)
    assert (file.pid, file.ppid, file.command) == (77, 5, ["shop", "-x"])
    # The second one has not changed since the maximum; it can't have freed more than it has.
    assert file.rows(everything=False) == [(2, 900, 300, 3, 1, 40, 2), (3, 500, 500, 2, 2, 0, 0)]
    assert file.addresses(2) == (0x1100, 0x2100)
    assert file.addresses(3) == (0x1100,)
    assert file.stats == {"interval": 400, "slower": 2, "live_full": 1, "out_of_memory": 2}
    file.close()


def test_only_changed_rows_are_returned(path: Path, write: Write) -> None:
    file = open_file(path)
    file.rows(everything=False)
    assert file.rows(everything=False) == []
    write(TOTALS_AT + 2 * 64, struct.pack("<Q", 1000))
    assert [row[:2] for row in file.rows(everything=False)] == [(2, 1000)]
    assert len(file.rows(everything=True)) == 2
    file.close()


def test_interned_data_has_places_in_files(path: Path) -> None:
    file = open_file(path)
    stacks = file.new_stacks()
    assert [stacks.number(2), stacks.number(3), stacks.number(2)] == [1, 2, 1]
    assert stacks.number(9) == 3  # A stack without addresses.
    data = stacks.take()
    assert data is not None
    assert [text.str for text in data.function_names] == [
        b"shop+0x1200", b"shop+0x200", b"[other stacks]",
    ]  # fmt: skip
    mapping = data.mappings[0]
    assert (mapping.start, mapping.end, mapping.exact_offset) == (0x1000, 0x3000, 0x100)
    assert data.mapping_paths[0].str == b"/bin/shop"
    assert [list(stack.frame_ids) for stack in data.callstacks] == [[1, 2], [2], [3]]
    assert stacks.take() is None
    file.close()


@pytest.mark.parametrize(
    "changed",
    [
        {"pid": 1 << 31},
        {"stacks": 0},
        {"stacks": 1 << 40},
        {"addresses": 1 << 40},
        {"code_size": 1 << 40},
    ],
)
def test_impossible_numbers_are_refused(path: Path, write: Write, changed: dict[str, int]) -> None:
    file = open_file(path)
    before = file.rows(everything=False)
    write(0, header(**changed))
    assert file.rows(everything=True) == before
    with pytest.raises(ValueError, match="heap file"):
        open_file(path)
    file.close()


def test_file_that_is_truncated_keeps_what_was_read(path: Path) -> None:
    file = open_file(path)
    before = file.rows(everything=False)
    os.truncate(path, 100)
    assert file.rows(everything=True) == before
    assert file.addresses(2) == ()
    assert file.code() == ""
    file.close()
    with pytest.raises(ValueError, match="heap file"):
        open_file(path)


def test_stacks_outside_of_their_area_are_empty(path: Path, write: Write) -> None:
    write(STACKS_AT + 2 * 8, struct.pack("<4I", 0xFFFFFFFF, 1, 0, 0xFFFFFFFF))
    write(0, header(changes=7))  # For ever: it was killed while it wrote.
    file = open_file(path)
    assert file.addresses(2) == file.addresses(3) == ()
    assert len(file.rows(everything=True)) == 2
    file.close()


class Writer:
    """Takes packets, as a trace writer."""

    def write(self, packet: bytes) -> bool:
        TracePacket.decode(packet)
        return True


@pytest.mark.parametrize("seed", range(20))
def test_dump_of_any_bytes_raises_nothing(path: Path, write: Write, seed: int) -> None:
    random = Random(seed)
    write(TOTALS_AT, random.randbytes(40 * 64))
    write(STACKS_AT, random.randbytes(20 * 8) + struct.pack("<2I", 0, 50) * 20)
    write(ADDRESSES_AT, random.randbytes(60 * 8))
    lines = [f"{random.getrandbits(70):x}-{random.getrandbits(70):x} r-xp -{i:x}" for i in range(9)]
    lines += ["0-ffffffffffffffff r-xp ffffffffffffffff 0 0 /bin/sh", "-1-5 r-xp 0 0 0 /x"]
    code = "\n".join(lines).encode() + b"\n\xff\n"
    write(CODE_AT, code)
    numbers = {name: random.getrandbits(64) for name in ("start", "interval", "max_change")}
    write(
        0, header(stacks=39, code_size=len(code), first_interval=random.getrandbits(9), **numbers)
    )
    file = open_file(path)
    sequence = HeapSequence(file, cast("Any", Writer()), at_max=bool(seed % 2))
    sequence.dump(Moment.now(file.stats))
    sequence.free(Moment.now(file.stats))
    file.close()


def test_links_are_not_followed(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(OSError, match="symbolic links"):
        open_file(link)
