"""Makes the traces of bench/analysis.py: each a file of a given size, always the same."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

from stretto.protos.trace import (
    ClockSnapshot,
    DebugAnnotation,
    DebugAnnotationName,
    EventName,
    FtraceEvent,
    FtraceEventBundle,
    InternedData,
    SchedSwitchFtraceEvent,
    ThreadDescriptor,
    Trace,
    TracePacket,
    TracePacketDefaults,
    TrackDescriptor,
    TrackEvent,
)
from stretto.protozero.wire import bytes_field, varint_field

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

THREADS = 4
NAMES = 200
GROUP = 2000
CLOCK = 64
BOOTTIME = 6
START = 1_000_000_000_000
"""The time of the first event, in ns."""


def write(path: Path, pieces: Iterator[bytes], size: int) -> None:
    """Write pieces until a file has the given size."""
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece)
            if file.tell() >= size:
                return


def slices(with_args: bool) -> Iterator[bytes]:
    """Yield pieces of a trace of nested slices on four threads, with interned names."""
    sequences = range(1, THREADS + 1)
    for sequence in sequences:
        yield Trace(packet=list(_first(sequence))).encode()
    groups = [Trace(packet=list(_group(sequence, with_args))).encode() for sequence in sequences]
    while True:
        yield from groups


def _first(sequence: int) -> Iterator[TracePacket]:
    names = [EventName(iid=i + 1, name=f"function_{i}") for i in range(NAMES)]
    keys = [DebugAnnotationName(iid=i + 1, name=f"argument_{i}") for i in range(4)]
    thread = ThreadDescriptor(pid=10, tid=10 + sequence, thread_name=f"thread {sequence}")
    descriptor = TrackDescriptor(uuid=sequence, thread=thread)
    clocks = [
        ClockSnapshot.Clock(clock_id=CLOCK, timestamp=START, is_incremental=True),
        ClockSnapshot.Clock(clock_id=BOOTTIME, timestamp=START),
    ]
    yield TracePacket(
        trusted_packet_sequence_id=sequence,
        sequence_flags=1,
        clock_snapshot=ClockSnapshot(clocks=clocks),
    )
    yield TracePacket(
        trusted_packet_sequence_id=sequence,
        track_descriptor=descriptor,
        interned_data=InternedData(event_names=names, debug_annotation_names=keys),
        trace_packet_defaults=TracePacketDefaults(timestamp_clock_id=CLOCK),
    )


def _group(sequence: int, with_args: bool) -> Iterator[TracePacket]:
    """Yield the packets of nested slices; the last one closes all."""
    chance = random.Random(sequence)
    depth = 0
    for left in range(GROUP, 0, -1):
        begins = depth < left and (depth == 0 or (depth < 20 and chance.random() < 0.5))
        depth += 1 if begins else -1
        yield TracePacket(
            timestamp=chance.randrange(100, 9000),
            trusted_uid=1000,
            trusted_pid=4321,
            trusted_packet_sequence_id=sequence,
            sequence_flags=2,
            track_event=_begin(sequence, chance, with_args)
            if begins
            else TrackEvent(type=TrackEvent.Type.TYPE_SLICE_END, track_uuid=sequence),
        )


def _begin(sequence: int, chance: random.Random, with_args: bool) -> TrackEvent:
    annotations = [
        DebugAnnotation(name_iid=1, int_value=chance.randrange(1_000_000)),
        DebugAnnotation(name_iid=2, string_value=f"value {chance.randrange(1000)}"),
    ]
    return TrackEvent(
        type=TrackEvent.Type.TYPE_SLICE_BEGIN,
        track_uuid=sequence,
        name_iid=1 + int(NAMES * chance.random() ** 2),
        debug_annotations=annotations if with_args else [],
    )


def ftrace() -> Iterator[bytes]:
    """Yield pieces of a trace of scheduling events: half compact, half as events."""
    chance = random.Random(1)
    bundles = [_compact(cpu, chance) for cpu in range(4)]
    events = [_events(cpu, chance) for cpu in range(4)]
    now = START
    while True:
        for cpu in range(4):
            at, parts = now, [varint_field(1, cpu)]
            for delta, event in events[cpu]:
                at += delta
                parts.append(bytes_field(2, b"\x08" + _time(at) + event))
            yield _bundle(b"".join(parts))
            half = _time(now + 500_000_000)
            yield _bundle(bundles[cpu].replace(_time(START), half))
        now += 1_000_000_000


def _bundle(content: bytes) -> bytes:
    return bytes_field(1, varint_field(10, 1) + bytes_field(1, content))


def _time(value: int) -> bytes:
    """Return a time as a varint; the times of these traces all have six bytes."""
    return (
        value & 0x7F
        | value << 1 & 0x7F00
        | value << 2 & 0x7F0000
        | value << 3 & 0x7F000000
        | value << 4 & 0x7F00000000
        | value << 5 & 0x7F0000000000
        | 0x8080808080
    ).to_bytes(6, "little")


def _tasks(cpu: int, chance: random.Random) -> list[int]:
    return [100 + cpu * 50 + chance.randrange(50) for _ in range(501)]


def _compact(cpu: int, chance: random.Random) -> bytes:
    pids = _tasks(cpu, chance)[1:]
    compact = FtraceEventBundle.CompactSched(
        intern_table=[f"task {n}" for n in range(200)],
        switch_timestamp=[START, *(chance.randrange(1000, 900_000) for _ in pids[1:])],
        switch_prev_state=[chance.randrange(2) for _ in pids],
        switch_next_pid=pids,
        switch_next_prio=[120] * len(pids),
        switch_next_comm_index=[pid - 100 for pid in pids],
    )
    return FtraceEventBundle(cpu=cpu, compact_sched=compact).encode()


def _events(cpu: int, chance: random.Random) -> list[tuple[int, bytes]]:
    """Return events without their times, with the time since the event before."""
    events = []
    for before, after in pairwise(_tasks(cpu, chance)):
        switch = SchedSwitchFtraceEvent(
            prev_comm=f"task {before - 100}",
            prev_pid=before,
            prev_prio=120,
            prev_state=before % 2,
            next_comm=f"task {after - 100}",
            next_pid=after,
            next_prio=120,
        )
        event = FtraceEvent(pid=before, sched_switch=switch).encode()
        events.append((chance.randrange(1000, 900_000), event))
    return events


def json_events() -> Iterator[bytes]:
    """Yield pieces of a trace of Chrome's JSON: complete events with an argument."""
    chance = random.Random(1)
    now = 1_000_000
    yield b'{"traceEvents":['
    while True:
        lines = []
        for _ in range(GROUP):
            now += chance.randrange(1, 9)
            lines.append(
                f'{{"ph":"X","pid":10,"tid":{11 + now % 4},"ts":{now}.{now % 1000:03},'
                f'"dur":0.5,"name":"function_{now % NAMES}","cat":"bench",'
                f'"args":{{"number":{now % 100_000}}}}},\n'
            )
        yield "".join(lines).encode()


JSON_END = b'{"ph":"M","pid":10,"tid":11,"name":"process_name","args":{"name":"program"}}]}'
