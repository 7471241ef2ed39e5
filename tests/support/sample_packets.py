"""Traces with samples of stacks, as a producer with `PerfSample` packets writes them."""

from __future__ import annotations

from stretto.protos.config import PerfEvents
from stretto.protos.trace import (
    Callstack,
    Frame,
    InternedData,
    InternedString,
    Mapping,
    PerfSample,
    PerfSampleDefaults,
    ProcessTree,
    Trace,
    TracePacket,
    TracePacketDefaults,
)

CLEARED, NEEDED = 1, 2
FAST, SLOW = 1, 2
"""The stacks: a function each."""


def samples(
    timebase: PerfEvents.Timebase,
    stack: int,
    number: int,
    *,
    first: int,
    sequence: int = 1,
    pid: int = 7,
) -> list[TracePacket]:
    """Return defaults with this timebase, and samples of a main thread in a stack."""
    names = ((FAST, b"fast"), (SLOW, b"slow"))
    data = InternedData(
        function_names=[InternedString(iid=iid, str=name) for iid, name in names],
        mapping_paths=[InternedString(iid=1, str=b"/shop.py")],
        mappings=[Mapping(iid=1, path_string_ids=[1])],
        frames=[Frame(iid=iid, function_name_id=iid, mapping_id=1) for iid in (FAST, SLOW)],
        callstacks=[Callstack(iid=iid, frame_ids=[iid]) for iid in (FAST, SLOW)],
    )
    defaults = TracePacketDefaults(perf_sample_defaults=PerfSampleDefaults(timebase=timebase))
    start = TracePacket(
        timestamp=first,
        trusted_packet_sequence_id=sequence,
        sequence_flags=CLEARED,
        interned_data=data,
        trace_packet_defaults=defaults,
    )
    return [start] + [
        TracePacket(
            timestamp=first + at,
            trusted_packet_sequence_id=sequence,
            sequence_flags=NEEDED,
            perf_sample=PerfSample(pid=pid, tid=pid, callstack_iid=stack),
        )
        for at in range(number)
    ]


def every(period: int, name: str = "cpu-clock") -> PerfEvents.Timebase:
    return PerfEvents.Timebase(period=period, counter=PerfEvents.SW_CPU_CLOCK, name=name)


def trace_of(*groups: list[TracePacket]) -> bytes:
    tree = ProcessTree(
        processes=[ProcessTree.Process(pid=pid, cmdline=["shop.py"]) for pid in (7, 8)],
        threads=[ProcessTree.Thread(tid=pid, tgid=pid, name="MainThread") for pid in (7, 8)],
    )
    named = TracePacket(timestamp=1, process_tree=tree)
    return Trace(packet=[named, *(packet for group in groups for packet in group)]).encode()
