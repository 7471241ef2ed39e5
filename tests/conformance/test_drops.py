"""After dropped packets, later events are readable with correct names and nesting."""

from __future__ import annotations

import random
import threading

import pytest

import stretto
from stretto.testing.decoded_packets import decode_packets
from tests.support.polling import wait_until
from tests.support.slow_service import BUFFER, SlowService

CATEGORY = stretto.Category("test.drops")
SMB_FULL = 1 | 256
NAMES = [f"name {number}" for number in range(40)]


@pytest.fixture
def service():
    service = SlowService()
    service.start()
    yield service
    service.close()


class Program:
    """Writes nested, numbered slices, and records which events the trace must contain.

    If the BEGIN of a slice is dropped, the trace shows the slice's children below its parent.
    """

    def __init__(self, service: SlowService, seed: int) -> None:
        self.random = random.Random(seed)
        self.service = service
        self.expected: dict[int, tuple[str, int | None]] = {}
        self.dropped = 0
        self.number = 0

    def written(self) -> bool:
        now = self.service.counts()[0]
        before, self.last = getattr(self, "last", 0), now
        return now > before

    def note(self, name: str, parent: int | None) -> bool:
        if self.written():
            self.expected[self.number] = (name, parent)
            return True
        self.dropped += 1
        return False

    def slice(self, depth: int, parent: int | None) -> None:
        self.number += 1
        number, name = self.number, self.random.choice(NAMES)
        slice_ = CATEGORY.slice(name, number=number, payload="x" * self.random.randrange(60))
        with slice_:
            inner = number if self.note(name, parent) else parent
            for _ in range(self.random.randrange(4) if depth < 6 else 0):
                if self.random.random() < 0.003:
                    self.service.catch_up()
                self.slice(depth + 1, inner)
        self.written()

    def run(self, slices: int) -> None:
        while self.number < slices:
            self.slice(0, None)
            if self.random.random() < 0.02:
                self.service.catch_up()


FOUND = """
select extract_arg(s.arg_set_id, 'debug.number'), s.name,
       extract_arg(p.arg_set_id, 'debug.number'), s.dur
from slice s left join slice p on s.parent_id = p.id
"""


@pytest.mark.parametrize("seed", range(4))
def test_events_after_dropped_packets_have_correct_names_and_nesting(service, oracle, seed):
    program = Program(service, seed)
    program.run(3000)
    service.catch_up()
    with CATEGORY.slice("last"):
        pass
    service.stop()
    rows = oracle(service.read()).query(FOUND)
    found = {number: (name, parent) for number, name, parent, _ in rows if number is not None}
    assert program.dropped > 50, "the buffer never overflowed: the test shows nothing"
    assert len(program.expected) > 500
    assert found == program.expected
    assert all(duration >= 0 for *_, duration in rows), "a slice was left open"


def test_loss_of_packets_is_marked_in_the_trace(service):
    for number in range(5000):
        CATEGORY.instant("event", number=number)
    service.catch_up()
    CATEGORY.instant("after")
    written, lost = service.counts()
    service.stop()
    packets = decode_packets(service.read())
    events = [packet for packet in packets if packet.has("track_event")]
    marks = [packet.previous_packet_dropped for packet in packets]
    assert len(events) == written
    assert written + lost == 5001
    assert lost > 0
    assert any(marks)


def short_thread() -> None:
    thread = threading.Thread(target=CATEGORY.instant, args=("short",))
    thread.start()
    thread.join()


def test_loss_of_packets_of_an_ended_thread_is_marked(service, oracle):
    service.arbiter.open_buffer(BUFFER)
    for _ in range(20):
        short_thread()
    wait_until(
        lambda: service.arbiter.live_writers <= 1
    )  # join() may return before the writer is closed
    written, lost = service.counts()
    assert written, "nothing was recorded"
    assert lost, "the buffer never overflowed: the test shows nothing"
    trace = service.read()
    loaded = oracle(trace)
    assert loaded.query("select count(*) from slice where name = 'short'") == [(written,)]
    assert loaded.errors() == []
    marks = [packet.previous_packet_dropped or 0 for packet in decode_packets(trace)]
    assert sum(mark == SMB_FULL for mark in marks) == lost
    service.stop()
    service.arbiter.close_buffer(BUFFER)
