"""The service withstands producers that die, flood it, or use unusual shared memory.

Lost events are counted and marked in the trace, and the service's memory and number of
descriptors stay bounded. The service is also stopped and continued by signals.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from stretto.protos.trace import TracePacket
from stretto.protozero.decoder import Decoder
from stretto.testing.decoded_packets import decode_packets, split_packets
from tests.support.polling import wait_until
from tests.support.producer_process import TRACK
from tests.support.service_setup import make_config
from tests.support.sources import ROOT
from tests.support.traced import Daemon, Process, closing_all

pytestmark = pytest.mark.thorough


@pytest.fixture
def opened():
    with closing_all() as opened:
        yield opened


@pytest.fixture
def daemon(tmp_path, opened):
    opened.append(Daemon(tmp_path))
    return opened[0]


@pytest.fixture
def start(daemon, opened):
    """Return a function that starts tests/support/producer_process.py in a role."""

    def start_role(*arguments):
        opened.append(Role(daemon, *arguments))
        return opened[-1]

    return start_role


@pytest.fixture
def record(daemon, opened):
    """Return a function that starts a session and returns its consumer."""

    def start_session(config):
        opened.append(daemon.consumer())
        opened[-1].enable(config)
        return opened[-1]

    return start_session


class Role(Process):
    """A process of producer_process.py in a role, which is a behaviour such as 'flood'."""

    def __init__(self, daemon, role, *arguments):
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        module = ("-m", "tests.support.producer_process")
        words = (role, daemon.producer_socket, *map(str, arguments))
        environment = {**os.environ, "PYTHONPATH": path}
        super().__init__(sys.executable, *module, *words, env=environment)

    def read_report(self):
        """Read the next line of JSON that the process prints."""
        return json.loads(self.line())

    def request_report(self):
        """Request a report from the process, such as its numbers of events; return the report."""
        self.write_line("?")
        return self.read_report()

    def finish(self):
        """End the process; return its last report."""
        self.popen.stdin.close()
        return self.read_report()


def memory_kb(daemon, name):
    """Return a memory size of the process in kB from /proc/PID/status, such as VmRSS."""
    lines = Path(f"/proc/{daemon.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name + ":")).split()[1])


def descriptors(daemon):
    """Return the number of open descriptors of the process."""
    return len(os.listdir(f"/proc/{daemon.pid}/fd"))


def finish(consumer):
    """Flush, stop and read the session; return the trace's bytes and its packets."""
    consumer.flush()
    consumer.stop()
    trace = consumer.read()
    return trace, decode_packets(trace)


OVERWRITTEN = "select sum(value) from stats where name = 'traced_buf_chunks_overwritten'"


LONG_EVENTS = """
with texts as (select extract_arg(arg_set_id, 'debug.long[3]') as text from slice)
select count(text), sum(length(text)) from texts
"""


def events_of(packets):
    """Return the events of each producer index as (number, loss mask), in trace order."""
    found = {}
    for packet in packets:
        if packet.has("track_event"):
            events = found.setdefault(packet.track_event.track_uuid - TRACK, [])
            events.append((int(packet.track_event.name[:8]), packet.previous_packet_dropped))
    return found


def check_losses(events):
    """Check that the events are in order and that the trace marks every loss."""
    expected = 0
    for number, loss in events:
        assert number == expected or (number > expected and loss)
        expected = number + 1


def buffer_stats(packets):
    (stats,) = [packet.trace_stats for packet in packets[-1:]]
    return stats.buffer_stats


def two_buffers(**sizes_kb):
    """Return a config with one buffer for each data source."""
    config = make_config(*sizes_kb, buffers=len(sizes_kb))
    for index, size_kb in enumerate(sizes_kb.values()):
        config.buffers[index].size_kb = size_kb
        config.data_sources[index].config.target_buffer = index
    return config


def test_service_recovers_when_a_third_of_its_producers_is_killed(
    daemon, start, record, oracle, opened
):
    producers, events = 200, 150
    before, memory = descriptors(daemon), memory_kb(daemon, "VmRSS")
    consumer = record(make_config("ds", size_kb=32768))
    crowd = start("crowd", producers, events)
    written = crowd.read_report()["written"]
    trace, packets = finish(consumer)
    found = events_of(packets)
    assert len(found) == producers
    for index, count in enumerate(written):
        # A killed producer may have completed its last event without counting it.
        assert found[index] == [(number, 0) for number in range(len(found[index]))]
        assert len(found[index]) - count in ((0, 1) if index % 3 == 0 else (0,))
    assert oracle(trace).errors() == []
    for thing in (crowd, consumer):
        opened.remove(thing)
        thing.close()
    wait_until(lambda: descriptors(daemon) == before, "descriptors are closed")
    assert memory_kb(daemon, "VmRSS") < memory + 10_000
    assert memory_kb(daemon, "VmHWM") < memory + 32_768 + 60_000


def test_flooding_producer_harms_no_other_buffer(daemon, start, record, oracle):
    memory = memory_kb(daemon, "VmRSS")
    consumer = record(two_buffers(flood=1024, ds=8192))
    flood = start("flood", "flood", 9, 256 << 10, 0)
    assert flood.read_report()["size"] == 256 << 10
    written = start("crowd", 3, 4000).read_report()["written"]
    assert consumer.flush()
    facts = flood.finish()
    trace, packets = finish(consumer)
    found = events_of(packets)
    for index, count in enumerate(written):
        assert found[index][:count] == [(number, 0) for number in range(count)]
    check_losses(found[9])
    assert facts["written"] + facts["dropped"] == facts["number"]
    flooded, other = buffer_stats(packets)
    assert flooded.chunks_overwritten > 100  # the flood filled the buffer many times
    assert not other.chunks_overwritten
    overwritten = oracle(trace).query(OVERWRITTEN)
    assert overwritten == [(flooded.chunks_overwritten,)]
    assert memory_kb(daemon, "VmHWM") < memory + 1024 + 8192 + 20_000


def write_more(roles, events):
    """Wait until each producer has written this number of further events."""
    for role in roles:
        enough = role.request_report()["number"] + events
        wait_until(
            lambda role=role, enough=enough: role.request_report()["number"] > enough, "events"
        )


def test_events_lost_while_the_service_process_is_stopped_are_marked(daemon, start, record, oracle):
    consumer = record(two_buffers(small=32768, large=32768))
    small = start("flood", "small", 0, 256 << 10, 5000)
    large = start("flood", "large", 1, 4 << 20, 5000)
    for role in (small, large):
        role.read_report()
    daemon.stop()
    # 4000 events of about 130 bytes fill the small memory twice and an eighth of the large one.
    write_more((small, large), 4000)
    daemon.signal(signal.SIGCONT)
    write_more((small, large), 2000)
    facts = [role.finish() for role in (small, large)]
    trace, packets = finish(consumer)
    found = events_of(packets)
    for index, fact in enumerate(facts):
        assert fact["written"] + fact["dropped"] == fact["number"]
        assert len(found[index]) == fact["written"]
        check_losses(found[index])
    assert found[1] == [(number, 0) for number in range(facts[1]["number"])]
    assert facts[0]["dropped"] > 1000
    assert found[0][-1][0] == facts[0]["number"] - 1  # the last written event is in the trace
    losses = {name for name, *_ in oracle(trace).errors()}
    assert losses
    assert losses <= {"traced_buf_trace_writer_packet_loss", "traced_buf_sequence_packet_loss"}


KIB = 1024
PID = 79
"""TracePacket.trusted_pid."""


@pytest.mark.parametrize("page_size", [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB])
def test_service_reads_all_page_sizes_and_layouts(start, record, oracle, page_size):
    consumer = record(make_config("ds", size_kb=65536))
    facts = start("layouts", page_size).read_report()
    assert set(facts["layouts"]) >= {1, 2, 3, 4, 5}
    assert facts["page_size"] == page_size
    trace, packets = finish(consumer)
    found = events_of(packets)
    assert len(found) == 40
    for index, count in enumerate(facts["numbers"]):
        assert found[index] == [(number, 0) for number in range(count)]
    loaded = oracle(trace)
    assert loaded.errors() == []
    count = sum(count // 5 for count in facts["numbers"])
    assert loaded.query(LONG_EVENTS) == [(count, count * (page_size // 3 // 4))]


@pytest.mark.parametrize(
    ("wished", "given"),
    [
        ((0, 0), (4 * KIB, 256 * KIB)),
        ((32 * KIB, 32 * KIB), (32 * KIB, 32 * KIB)),
        ((64 * KIB, 1024 * KIB), (32 * KIB, 1024 * KIB)),
        ((20 * KIB, 1024 * KIB), (4 * KIB, 256 * KIB)),
        ((4 * KIB, 6 * KIB), (4 * KIB, 256 * KIB)),
        ((2 * KIB, 1024 * KIB), (4 * KIB, 256 * KIB)),
        ((16 * KIB, 1 << 30), (16 * KIB, 32 << 20)),
    ],
)
def test_requested_memory_size_is_limited_or_replaced_by_the_default(start, record, wished, given):
    consumer = record(make_config("ds"))
    facts = start("geometry", *wished).read_report()
    assert (facts["page_size"], facts["shm_size"]) == given
    assert events_of(finish(consumer)[1]) == {0: [(0, 0)]}


def top_level(packet):
    """Return the last value of each field of an encoded message, by field number."""
    decoder = Decoder(packet)
    fields = {field.number: field.value or bytes(field.data) for field in decoder}
    assert decoder.bytes_left == 0
    return fields


def test_malicious_producer_harms_no_other_producer(start, record, daemon, opened, oracle):
    other_session = record(make_config("flood", size_kb=32768))
    flood = start("flood", "flood", 9, 4 << 20, 2000)
    flood.read_report()
    consumer = record(make_config("ds", size_kb=65536))
    hostile = start("hostile", 200)
    written = start("crowd", 4, 3000).read_report()["written"]
    evil = hostile.read_report()["pid"]
    hostile.close()
    facts = flood.finish()

    assert consumer.flush()
    consumer.stop()
    packets = list(split_packets(consumer.read()))
    theirs = [packet for packet in packets if top_level(packet).get(PID) == evil]
    assert len(theirs) > 20  # the malicious producer did write packets
    assert not any(b"spoof" in packet for packet in packets)
    ours = [TracePacket.decode(packet) for packet in packets if packet not in theirs]
    found = events_of(ours)
    for index, count in enumerate(written):
        assert found[index][:count] == [(number, 0) for number in range(count)]
    assert ours[-1].trace_stats.invalid_packets > 20
    assert ours[-1].trace_stats.chunks_discarded > 100

    trace, packets = finish(other_session)
    assert events_of(packets) == {9: [(number, 0) for number in range(facts["number"])]}
    assert {packet.trusted_pid for packet in packets if packet.has("track_event")} == {flood.pid}
    # A patch that names a buffer of another session finds no chunk in it. As in Perfetto,
    # the service counts the patch as failed in that buffer and changes nothing else.
    assert {name for name, *_ in oracle(trace).errors()} <= {"traced_buf_patches_failed"}
