"""Traces in Fuchsia's format give the tables of Perfetto's trace processor: slices, counters,
flows, scheduling, names, packets in blobs, and what is wrong in a trace.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import stretto
from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.records import Event, Thread
from tests.conformance.test_tables import check, encode
from tests.support.fxt_bytes import MAGIC, argument, event, record, string, text, thread, words
from tests.support.fxt_traces import CLIENT, SERVER, FxtTrace, exported
from tests.support.oracle import Oracle
from tests.support.recorded_events import record as record_events

pytestmark = pytest.mark.once

LEGACY_SWITCH, SWITCH, WAKE = range(3)
IDLE = -(1 << 31)
"""The weight of the idle thread of a CPU."""


def events() -> bytes:
    trace = FxtTrace()
    trace.event(fxt.DURATION_BEGIN, 10, CLIENT, "outer", n=1, f=1.5, t="x", b=True)
    trace.event(fxt.FLOW_BEGIN, 11, CLIENT, "flow", number=5)
    trace.event(fxt.DURATION_COMPLETE, 12, CLIENT, "inner", end=15, nothing=None)
    trace.event(fxt.DURATION_COMPLETE, 12, CLIENT, "ends before it begins", end=11)
    trace.event(fxt.FLOW_STEP, 13, SERVER, "flow", number=5)
    trace.event(fxt.DURATION_BEGIN, 14, SERVER, "served")
    for time, kind in enumerate((fxt.FLOW_STEP, fxt.FLOW_END, fxt.FLOW_END), start=15):
        trace.event(kind, time, SERVER, "flow", number=5)
    trace.event(fxt.DURATION_END, 18, SERVER, "another name", more=2)
    trace.event(fxt.INSTANT, 19, CLIENT, "mark")
    trace.event(fxt.DURATION_END, 20, CLIENT)
    trace.event(fxt.COUNTER, 21, CLIENT, "memory", number=3, a=1, b=-2.5, c="no number")
    trace.event(fxt.COUNTER, 9, CLIENT, "memory", number=1 << 63, a=-1)
    for thread_, number in ((CLIENT, 9), (SERVER, 10), (SERVER, 11)):
        trace.event(fxt.ASYNC_BEGIN, 22, thread_, "load", number=number)
    trace.event(fxt.ASYNC_INSTANT, 23, CLIENT, "mark", number=9)
    for thread_, number in ((CLIENT, 9), (SERVER, 10), (SERVER, 12)):
        trace.event(fxt.ASYNC_END, 24, thread_, "load", number=number)
    trace.event(fxt.INSTANT, 5, Thread(0, 0), "of process 0")
    trace.event(fxt.INSTANT, 6, Thread((1 << 63) + 7, (1 << 63) + 8), "of large ids")
    trace.records.event(Event(fxt.DURATION_BEGIN, 30, CLIENT, "", "never ended", ()))
    return trace.data


def weight(name: str, value: int, kind: int = fxt.INT32) -> bytes:
    return argument(kind, fxt.INLINE | len(name), value, text(name))


def switch(
    time: int, old: tuple[int, int], new: tuple[int, int], cpu: int = 0, state: int = 3
) -> bytes:
    """Return a switch between two threads, given as tid and weight."""
    weights = weight("outgoing_weight", old[1]) + weight("incoming_weight", new[1])
    high = 2 | cpu << 4 | state << 20 | SWITCH << 44
    return record(fxt.SCHEDULING, high, words(time, old[0], new[0]), weights)


def wake(time: int, tid: int, weight_: bytes, cpu: int = 0) -> bytes:
    return record(fxt.SCHEDULING, 1 | cpu << 4 | WAKE << 44, words(time, tid), weight_)


def legacy_switch(
    time: int, old: Thread, new: Thread, old_priority: int, new_priority: int
) -> bytes:
    high = 2 | 3 << 8 | old_priority << 28 | new_priority << 36
    return record(fxt.SCHEDULING, high, words(time), words(*old), words(*new))


def scheduling() -> bytes:
    client, server = CLIENT.thread, SERVER.thread
    return FxtTrace().data + b"".join(
        [
            switch(30, (client, 5), (server, 6)),
            wake(35, client, weight("weight", 5), cpu=1),
            switch(40, (99, IDLE), (client, 5), cpu=1, state=0),
            switch(45, (server, 6), (99, IDLE), state=2),
            wake(46, 99, weight("weight", IDLE)),
            wake(47, client, weight("other", 1)),
            wake(48, client, weight("weight", 1, fxt.UINT32)),
            switch(50, (client, 5), (server, 6), state=9),
            switch(60, (server, 6), (100, 7), state=5),
            legacy_switch(70, SERVER, CLIENT, 20, 0),
            legacy_switch(80, Thread(0, 0), SERVER, 0, 7),
            legacy_switch(90, SERVER, Thread(0, 0), 7, 0),
            record(fxt.SCHEDULING, 5 << 44, words(95)),
        ]
    )


def tables() -> bytes:
    """Return a trace whose tables change, with two providers of other clocks."""
    info, section = 1, 2
    return b"".join(
        [
            MAGIC,
            string(1, "early"),
            thread(1, 10, 11),
            event(0, 1, 1, 1, 1),
            record(0, info | 7 << 4 | 1 << 36, text("a")),
            record(1, 0, words(3)),
            event(0, 2, 1, 1, 1),
            string(1, "own"),
            string(2, ""),
            thread(1, 20, 21),
            event(0, 10**9, 1, 1, 2),
            event(0, 1 << 62, 1, 1, 1),
            record(0, info | 8 << 4 | 1 << 36, text("b")),
            record(1, 0, words(0)),
            event(0, 1, 0, 0, 0, words(30, 31)),
            record(0, section | 7 << 4),
            event(0, 5, 1, 1, 2),
            record(0, section | 9 << 4),
            event(0, 6, 1, 1, 2),
            record(0, section),
            string(1, "later"),
            event(4, 7, 1, 1, 1, argument(6, 1, 1), words(9), count=1),
            event(4, 8, 2, 1, 1, argument(6, 1, 3), words(9), count=1),
            event(4, 9, 1, 1, 1, argument(3, 1), count=2),
            event(4, 9, 1, 1, 1, argument(11, 1), count=1),
            event(1, 9, 1, 1, 1, argument(9, 1, 1)),
            record(7, 1 | 1 << 8, words(20)),
            record(7, 2 | 1 << 8 | 1 << 24, words(21), argument(4, 1, 0, words(5))),
            record(7, 2 | (0x8000 | 1) << 8, words(22), text("t")),
            record(7, 3 | 1 << 8, words(23)),
            record(7, 1 | 9 << 8, words(24)),
            record(7, 1),
            record(4, 0),
        ]
    )


def blobs() -> bytes:
    packets = encode(
        """
packet { trusted_packet_sequence_id: 2 sequence_flags: 1 timestamp: 3
  track_descriptor { uuid: 7 thread { pid: 10 tid: 11 thread_name: "worker" } } }
packet { trusted_packet_sequence_id: 2 timestamp: 15
  track_event { type: TYPE_INSTANT track_uuid: 7 name: "of a packet" } }
"""
    )
    half = len(packets) // 2
    parts = [
        record(fxt.BLOB, (0x8000 | 1) | len(data) << 16 | 3 << 32, text("p"), text(data))
        for data in (packets[:half], packets[half:])
    ]
    other = record(fxt.BLOB, 8 << 16 | 1 << 32, words(1))
    return events() + parts[0] + other + parts[1]


def converted() -> bytes:
    """Return a trace that Stretto's own exporter has made."""
    with record_events() as recorded:
        category = stretto.Category("fxt")
        for number in range(20):
            flow = stretto.Flow()
            with category.slice("outer", flow=flow, number=number, nested={"a": [1, "x"]}):
                category.instant("mark", terminating_flow=flow)
                category.counter("queue", number)
    return exported(recorded.trace)[0]


def random_trace(seed: int) -> bytes:
    """Return records with fields by chance, of few strings, threads and times."""
    draw = random.Random(seed)
    parts = [MAGIC, string(1, "one"), string(2, "two"), thread(1, 10, 11), thread(2, 10, 12)]

    def reference() -> int:
        return draw.choice((0, 1, 1, 2, 2, 3))

    def arguments(count: int) -> bytes:
        kinds = [draw.randrange(11) for _ in range(count)]
        return b"".join(
            argument(
                kind, draw.randrange(3), draw.randrange(3), *[words(draw.randrange(9))] * (kind > 2)
            )
            for kind in kinds
        )

    for _ in range(300):
        count, time = draw.choice((0, 0, 1, 2)), draw.randrange(200)
        choice = draw.random()
        if choice < 0.8:
            end = words(draw.randrange(200))
            parts.append(
                event(
                    draw.randrange(11), time, draw.choice((1, 1, 2, 3)), reference(), reference(),
                    arguments(count), end, count=count,
                )
            )  # fmt: skip
        elif choice < 0.9:
            threads = [(draw.randrange(11, 14), draw.choice((1, IDLE))) for _ in range(2)]
            parts.append(switch(time, *threads, cpu=draw.randrange(3), state=draw.randrange(7)))
        elif choice < 0.95:
            parts.append(wake(time, draw.randrange(11, 14), weight("weight", 1)))
        else:
            kind, number = draw.randrange(4), draw.randrange(10, 14)
            koid = argument(8, fxt.INLINE | 7, 0, text("process"), words(10))
            parts.append(record(7, kind | reference() << 8 | 1 << 24, words(number), koid))
    return b"".join(parts)


TRACES = {
    "events": events,
    "scheduling": scheduling,
    "tables": tables,
    "blobs": blobs,
    "converted": converted,
    "cut": lambda: events()[:-20],
}


@pytest.mark.parametrize("make", TRACES.values(), ids=TRACES)
def test_tables_of_fxt_are_equal(make: Callable[[], bytes], oracle: type[Oracle]) -> None:
    check(make())


@pytest.mark.parametrize("seed", range(20))
def test_tables_of_random_records_are_equal(seed: int, oracle: type[Oracle]) -> None:
    check(random_trace(seed))
