"""Events left in a ring buffer that wrapped many times have their names and nesting."""

from __future__ import annotations

import threading

import stretto

FLOOD = stretto.Category("test.flood")
RARE = stretto.Category("test.rare")
WRAPS = 12
EVENTS = """
select thread.name, s.name, s.category, s.depth, s.dur,
       extract_arg(s.arg_set_id, 'debug.number'), extract_arg(p.arg_set_id, 'debug.number')
from slice s left join slice p on s.parent_id = p.id
join thread_track t on s.track_id = t.id join thread using (utid)
"""


class RareThread(threading.Thread):
    """A thread that writes a slice with an instant in it each time it is woken up."""

    def __init__(self) -> None:
        super().__init__(name="rare")
        self.wake, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self.stopped = False

    def run(self) -> None:
        number = 0
        while not self.stopped:
            with RARE.slice("rare slice", number=number):
                RARE.instant("rare instant")
            number += 1
            self.done.release()
            self.wake.acquire()

    def once(self) -> None:
        self.wake.release()
        self.done.acquire()

    def stop(self) -> None:
        self.stopped = True
        self.wake.release()
        self.join()


def flood(count):
    for number in range(count):
        with FLOOD.slice("outer", number=number), FLOOD.slice("inner", number=number):
            pass


def test_events_left_after_ring_wraps_are_named_and_nested(oracle, tmp_path):
    path = tmp_path / "trace"
    rare = RareThread()
    with stretto.recording(path, buffer="1mb") as session:
        rare.start()
        rare.done.acquire()
        for _ in range(WRAPS):
            threads = [threading.Thread(target=flood, args=(9000,)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            rare.once()
        rare.stop()
        stats = session.stats().buffer_stats[0]
    assert stats.bytes_written > 10 * stats.buffer_size
    assert stats.chunks_overwritten > 0
    trace = oracle(path.read_bytes())
    assert trace.errors() == []
    overwritten = "select value from stats where name = 'traced_buf_chunks_overwritten'"
    assert trace.query(overwritten)[0][0] >= stats.chunks_overwritten
    check(trace.query(EVENTS))


def check(rows):
    counts = {}
    for thread, name, category, depth, duration, number, parent in rows:
        counts[name] = counts.get(name, 0) + 1
        assert duration >= 0
        if name == "rare slice":
            assert (thread, category, depth) == ("rare", "test.rare", 0)
            assert number is not None
        elif name == "rare instant":
            assert (thread, depth) == ("rare", 1)
        elif name == "inner":
            assert category == "test.flood"
            assert parent in (number, None)  # None: the outer BEGIN was overwritten
        else:
            assert (name, category, depth) == ("outer", "test.flood", 0)
    assert set(counts) == {"rare slice", "rare instant", "inner", "outer"}
    assert counts["inner"] > 1000
