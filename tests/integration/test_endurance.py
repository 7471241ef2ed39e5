"""Many events of many threads are recorded without losses and without memory growth.

`make endurance` uses the durations and counts that the project promises; a plain test
run is shorter.
"""

from __future__ import annotations

import os
import threading
import time

import pytest

import stretto
from stretto import _native
from stretto.client.track_event.source import TrackEventSource
from stretto.protos.trace import TracePacket
from stretto.testing.decoded_packets import split_packets

ENDURANCE = bool(os.environ.get("STRETTO_ENDURANCE"))
SECONDS = 10 if ENDURANCE else 2
EVENTS_PER_THREAD = 100_000 if ENDURANCE else 20_000
BORN = 10_000 if ENDURANCE else 3_000
WARM = 1_000
KEPT_PER_DEAD_THREAD = 256
GROWTH_LIMIT = 8 << 20

CATEGORY = stretto.Category("test.endurance")

# The packet of `CATEGORY.instant("tick")`: sequence_flags, then a track event of type INSTANT
# whose category and name are interned ids of one byte each.
INSTANT = bytes.fromhex("68025a06480318015001")

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("endurance")]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "trace.pftrace"
    yield path
    path.unlink(missing_ok=True)


def recorded(before):
    """Return the numbers of written and lost events since the counts `before`."""
    return tuple(now - then for now, then in zip(TrackEventSource.counts, before, strict=True))


def final_stats(trace):
    """Return the buffer statistics at the end of a streamed trace."""
    start = trace.rfind(b"\x9a\x02")  # encoded tag of TracePacket.trace_stats
    for begin in range(max(0, start - 64), start):
        try:
            packets = [TracePacket.decode(packet) for packet in split_packets(trace[begin:])]
        except ValueError:
            continue
        stats = [packet.trace_stats for packet in packets if packet.has("trace_stats")]
        if stats:
            return stats[-1].buffer_stats[0]
    raise AssertionError("the trace ends without statistics")


def tight_loop(seconds):
    """Write events as fast as possible for this time; return their number."""
    written, end, instant = 0, time.monotonic() + seconds, CATEGORY.instant
    while time.monotonic() < end:
        for _ in range(10_000):
            instant("tick")
        written += 10_000
    return written


def test_streamed_recording_of_a_tight_loop_loses_no_event(path):
    before = list(TrackEventSource.counts)
    with stretto.recording(path, stream=True):
        written = tight_loop(SECONDS)
    trace = path.read_bytes()
    assert recorded(before) == (written, 0)
    assert trace.count(INSTANT) == written
    assert _native.tokenize(trace)[1] == len(trace)
    stats = final_stats(trace)
    assert stats.chunks_overwritten == stats.chunks_discarded == 0
    assert stats.trace_writer_packet_loss == stats.abi_violations == 0
    assert stats.chunks_committed_out_of_order == stats.patches_failed == 0


def test_ring_recording_of_a_tight_loop_loses_events_only_by_overwriting(path):
    before = list(TrackEventSource.counts)
    with stretto.recording(path, buffer="4mb") as session:
        written = tight_loop(SECONDS)
        stats = session.stats().buffer_stats[0]
    trace = path.read_bytes()
    assert recorded(before) == (written, 0)
    assert 50_000 < trace.count(INSTANT) < written
    assert stats.chunks_overwritten > 0
    assert stats.chunks_discarded == stats.trace_writer_packet_loss == 0
    assert stats.abi_violations == 0


def test_streamed_recording_of_64_threads_loses_no_event(path):
    def run():
        for _ in range(EVENTS_PER_THREAD):
            CATEGORY.instant("tick")

    before = list(TrackEventSource.counts)
    with stretto.recording(path, stream=True):
        in_threads(run, 64)
    assert recorded(before) == (64 * EVENTS_PER_THREAD, 0)
    assert path.read_bytes().count(INSTANT) == 64 * EVENTS_PER_THREAD


def test_recording_of_300_live_threads_loses_no_event(path, oracle):
    barrier = threading.Barrier(300)

    def run():
        barrier.wait()
        for number in range(100):
            with CATEGORY.slice("work", number=number):
                pass
        barrier.wait()

    before = list(TrackEventSource.counts)
    with stretto.recording(path):
        in_threads(run, 300)
    assert recorded(before) == (2 * 300 * 100, 0)
    trace = oracle(path.read_bytes())
    assert trace.errors() == []
    per_thread = trace.query(
        "select count(*), min(dur) >= 0 from slice join thread_track on track_id = thread_track.id"
        " where slice.name = 'work' group by utid"
    )
    assert per_thread == [(100, 1)] * 300


def in_threads(run, count):
    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def one_after_another(count):
    for _ in range(count):
        thread = threading.Thread(target=CATEGORY.instant, args=("tick",))
        thread.start()
        thread.join()


def test_short_lived_threads_leave_no_memory_behind(path):
    before = list(TrackEventSource.counts)
    # The buffer is small and all shared memory is already in use, so any memory growth is a leak.
    with stretto.recording(path, stream=True, buffer="256k"):
        one_after_another(WARM)
        resident = resident_bytes()
        one_after_another(BORN)
        growth = resident_bytes() - resident
    assert recorded(before) == (BORN + WARM, 0)
    assert path.read_bytes().count(INSTANT) == BORN + WARM
    assert growth < min(GROWTH_LIMIT, BORN * KEPT_PER_DEAD_THREAD)


def test_writer_ids_are_reused_without_collision():
    table = _native.BufferTable()
    table.create(1, 32 << 20, _native.RING)
    core = _native.ProducerEndpointCore(table, 1)
    core.allow_buffer(1, True)
    arbiter = _native.Arbiter.in_process(core, 1 << 20, 4096)
    count = 70_000  # more writers than ids, so each id is used at least twice
    for number in range(count):
        writer = _native.TraceWriter(arbiter, 1)
        assert writer.write(TracePacket(timestamp=number).encode())
        writer.close()
    readback = _native.Readback(table)
    readback.begin(1)
    found, more = [], True
    while more:
        data, more = readback.read(1, 1 << 20)
        found += [TracePacket.decode(packet).timestamp for packet in split_packets(data)]
    assert sorted(found) == list(range(count))
    assert arbiter.live_writers == 0
