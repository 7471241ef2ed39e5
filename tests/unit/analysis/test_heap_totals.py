"""Heap profiles are summed by process and function, with what grew since the first dump."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stretto.analysis.heap_totals import HoldingFunction, profiled_processes
from stretto.analysis.trace_tables import import_trace
from stretto.cli.heap_tables import heaps_as_text, heaps_as_values
from stretto.cli.record.lines_of_trace import lines_of_trace
from stretto.cli.record.memory_lines import memory_lines
from stretto.protos.trace import (
    Callstack,
    ClockSnapshot,
    Frame,
    InternedData,
    InternedString,
    Mapping,
    ProcessTree,
    ProfilePacket,
    Trace,
    TracePacket,
)

MB = 1 << 20
NAMES = ["main", "load", "cache"]
STACKS = [(1, 2), (1, 2, 3), (1,)]
SECOND = 1_000_000_000
MONOTONIC_COARSE, BOOTTIME = 4, 6

FIRST = {1: (8 * MB, 0), 2: (MB, 0), 3: (MB, 0)}
LAST = {1: (11 * MB, 2 * MB), 2: (5 * MB, 0), 3: (MB, MB)}
"""Bytes allocated and freed since the start, by the number of the stack."""


def clocks() -> TracePacket:
    both = [ClockSnapshot.Clock(clock_id=clock, timestamp=1) for clock in (BOOTTIME, 4)]
    return TracePacket(clock_snapshot=ClockSnapshot(clocks=both, primary_trace_clock=BOOTTIME))


def interned() -> InternedData:
    return InternedData(
        function_names=[InternedString(iid=i, str=n.encode()) for i, n in enumerate(NAMES, 1)],
        mapping_paths=[InternedString(iid=1, str=b"/srv/shop.py")],
        mappings=[Mapping(iid=1, path_string_ids=[1])],
        frames=[Frame(iid=i, function_name_id=i, mapping_id=1) for i in range(1, len(NAMES) + 1)],
        callstacks=[Callstack(iid=i, frame_ids=stack) for i, stack in enumerate(STACKS, 1)],
    )


def dump(
    index: int, pid: int, samples: dict[int, tuple[int, int]], heap: str = "python.obj"
) -> ProfilePacket:
    return ProfilePacket(
        index=index,
        process_dumps=[
            ProfilePacket.ProcessHeapSamples(
                pid=pid,
                heap_name=heap,
                timestamp=(index + 1) * SECOND,
                samples=[
                    ProfilePacket.HeapSample(
                        callstack_id=stack,
                        self_allocated=allocated,
                        self_freed=freed,
                        alloc_count=1,
                    )
                    for stack, (allocated, freed) in samples.items()
                ],
            )
        ],
    )


def write(path: Path, dumps: Sequence[tuple[Any, ...]]) -> str:
    """Write a trace of dumps, given by the arguments of `dump`: one each second."""
    tree = ProcessTree(
        processes=[ProcessTree.Process(pid=7, cmdline=["shop.py"]), ProcessTree.Process(pid=8)]
    )
    packets = [
        clocks(),
        TracePacket(timestamp=1, process_tree=tree),
        TracePacket(timestamp=1, sequence_flags=1, interned_data=interned()),
        *(
            TracePacket(
                timestamp=index + 2, sequence_flags=2, profile_packet=dump(index, *contents)
            )
            for index, contents in enumerate(dumps)
        ),
    ]
    for packet in packets:
        packet.trusted_packet_sequence_id = 1
    path.write_bytes(Trace(packet=packets).encode())
    return str(path)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Two dumps of a process, and one of another process."""
    dumps = [(7, FIRST), (7, LAST), (8, {3: (MB, 0)})]
    return write(tmp_path / "heap.pftrace", dumps)


def test_functions_hold_what_they_and_their_calls_have_allocated(trace: str) -> None:
    shop, other = profiled_processes(import_trace(trace))
    assert (shop.name, shop.pid, shop.dumps, shop.grown_ns) == ("shop.py", 7, 2, SECOND)
    assert shop.heaps == {"python.obj": 14 * MB}
    assert shop.grown == 4 * MB
    file = "/srv/shop.py"
    assert shop.functions == [
        HoldingFunction("load", file, 9 * MB, 14 * MB, MB, 5 * MB),
        HoldingFunction("cache", file, 5 * MB, 5 * MB, 4 * MB, 4 * MB),
        HoldingFunction("main", file, 0, 14 * MB, -MB, 4 * MB),
    ]
    assert other.heaps == {"python.obj": MB}
    assert (other.dumps, other.grown) == (1, 0)


def test_text_names_the_top_holders_and_what_grew(trace: str) -> None:
    text = heaps_as_text(profiled_processes(import_trace(trace)), 10)
    assert "shop.py (pid 7) holds 14.0 MiB: python.obj 14.0 MiB" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["9.0", "MiB", "14.0", "MiB", "load", "(shop.py)"] in lines
    assert "Grown by 4.0 MiB in the 1 s from the first dump to the last one" in text
    assert ["4.0", "MiB", "5.0", "MiB", "cache", "(shop.py)"] in lines
    assert "process 8 (pid 8) holds 1.0 MiB" in text
    assert text.count("Grown") == 1


FREED = {stack: (allocated, allocated) for stack, (allocated, _) in LAST.items()}
"""All of LAST is free, as at an exec."""
NEXT = {stack: (2 * size, size) for stack, (size, _) in LAST.items()}
MORE = {**NEXT, 2: (18 * MB, 5 * MB)}


def test_dumps_before_and_after_an_exec_are_not_compared(tmp_path: Path) -> None:
    dumps = [(7, dump) for dump in (FIRST, LAST, FREED, NEXT, MORE)]
    (shop,) = profiled_processes(import_trace(write(tmp_path / "exec.pftrace", dumps)))
    assert (shop.dumps, shop.grown_ns, shop.grown) == (2, SECOND, 8 * MB)
    assert {each.name: each.self_grown for each in shop.functions if each.self_grown} == {
        "cache": 8 * MB
    }
    (shop,) = profiled_processes(import_trace(write(tmp_path / "exec.pftrace", dumps[:4])))
    assert "Grown" not in heaps_as_text([shop], 10)


def test_first_dumps_of_two_profilers_have_not_grown(tmp_path: Path) -> None:
    dumps = [(7, FIRST), (7, FIRST, "libc.malloc"), (7, LAST)]
    (shop,) = profiled_processes(import_trace(write(tmp_path / "two.pftrace", dumps)))
    assert (shop.dumps, shop.grown_ns, shop.grown) == (2, 2 * SECOND, 4 * MB)


def test_memory_that_an_exec_has_freed_has_not_grown(tmp_path: Path) -> None:
    dumps = [(7, dump) for dump in (FIRST, LAST, FREED)]
    (shop,) = profiled_processes(import_trace(write(tmp_path / "exec.pftrace", dumps)))
    text = heaps_as_text([shop], 10)
    assert "holds 0 bytes: nothing" in text
    assert "Grown" not in text


def test_limit_is_that_of_processes_and_of_lines(trace: str) -> None:
    processes = profiled_processes(import_trace(trace))
    text = heaps_as_text(processes, 1)
    assert "and 1 function more" in text
    assert "and 1 process more" in text
    assert heaps_as_text([], 10) == ""
    (value,) = heaps_as_values(processes, 1)
    assert value["heaps"] == {"python.obj": 14 * MB}
    assert value["functions"] == [processes[0].functions[0]._asdict()]


def test_words_at_the_end_name_the_process_and_function_that_hold_most(trace: str) -> None:
    (line,) = lines_of_trace(trace, memory_lines)
    assert line.startswith("  memory: shop.py holds 14.0 MiB, 9.0 MiB of it allocated by load (")
