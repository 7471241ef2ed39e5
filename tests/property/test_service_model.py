"""The service writes the same trace with the native data path and with a simple model."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stretto import _native
from stretto.service import buffer_pool
from stretto.service.endpoints import producer_endpoint
from stretto.service.output import read_buffers
from stretto.testing import mock_producer
from stretto.testing.decoded_packets import decode_packets
from tests.support import native_model
from tests.support.examples import examples
from tests.support.service_setup import Setup, event, kinds, make_config, texts

SERVICE_MODULES = (buffer_pool, producer_endpoint, read_buffers, mock_producer)
PRODUCERS, WRITERS, SESSIONS = 3, 3, 2

STEPS = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 8), st.integers(0, 600)),
    st.tuples(st.just("commit"), st.integers(0, 8)),
    st.tuples(st.just("flush"), st.integers(0, SESSIONS - 1)),
    st.tuples(st.just("read"), st.integers(0, SESSIONS - 1)),
    st.tuples(st.just("snapshot"), st.integers(0, SESSIONS - 1)),
    st.tuples(st.just("clone"), st.integers(0, SESSIONS - 1)),
    st.tuples(st.just("disable"), st.integers(0, SESSIONS - 1)),
    st.tuples(st.just("advance"), st.integers(1, 20_000)),
    st.tuples(st.just("disconnect"), st.integers(0, PRODUCERS - 1)),
)


class Program:
    """Runs a list of steps with two sessions and three producers of three writers each."""

    def __init__(self, steps):
        self.setup = Setup()
        self.log = []
        self.count = 0
        config = make_config("ds", size_kb=4096, flush_period_ms=5000)
        moved = make_config("ds", size_kb=4096, flush_period_ms=5000)
        moved.buffers[0].transfer_on_clone = True
        # All packets of a writer fit into one chunk, so a chunk is committed only by a step.
        size = {"shm_size_hint": 1 << 20, "page_size_hint": 32 << 10}
        self.producers = [self.setup.producer("ds", **size) for _ in range(PRODUCERS)]
        self.sessions = [self.setup.enable(each) for each in (config, moved)]
        self.writers = [
            producer.writer("ds") for producer in self.producers for _ in range(WRITERS)
        ]
        for name, *arguments in steps:
            getattr(self, name)(*arguments)
        for session in range(SESSIONS):
            self.read(session)

    def write(self, index, size):
        self.count += 1
        self.writers[index].write(event(f"{self.count} {index} " + "x" * size))

    def commit(self, index):
        self.writers[index].flush()

    def flush(self, index):
        self.sessions[index].flush()
        self.setup.run()

    def read(self, index):
        self.note(self.setup.read(self.sessions[index]))

    def snapshot(self, index):
        session_id = self.sessions[index].endpoint.session_id
        self.note(decode_packets(b"".join(self.setup.service.snapshot(session_id))))

    def clone(self, index):
        clone = self.setup.consumer()
        clone.clone(self.sessions[index].endpoint.session_id)
        self.setup.run()
        self.note(self.setup.read(clone))
        clone.endpoint.disconnect()

    def disable(self, index):
        self.sessions[index].endpoint.disable_tracing()
        self.setup.run()

    def advance(self, milliseconds):
        self.setup.advance(milliseconds)

    def disconnect(self, index):
        self.producers[index].disconnect()
        self.setup.run()

    def note(self, packets):
        """Log the packets of a trace, grouped by writer: writers may be read in any order."""
        by_writer = {}
        for text in texts(packets):
            by_writer.setdefault(text.split()[1], []).append(text)
        trusted = {
            (p.for_testing.str.split()[1], p.trusted_uid, p.trusted_pid, p.first_packet_on_sequence)
            for p in packets
            if p.has("for_testing")
        }
        lost = [p for p in packets if p.previous_packet_dropped]
        of_the_service = [kind for kind in kinds(packets) if kind != "for_testing"]
        self.log.append((of_the_service, by_writer, trusted, len(lost)))


def run(native, steps):
    with pytest.MonkeyPatch.context() as patch:
        for module in SERVICE_MODULES:
            patch.setattr(module, "_native", native)
        return Program(steps).log


# These steps scrape a chunk into a buffer, and the buffer then moves into a clone. If the chunk is
# committed or scraped again later, the session's new buffer gets the whole chunk.
SCRAPED_THEN_MOVED = [("write", 0, 0), ("disable", 1), ("clone", 1)]


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=40))
@example([*SCRAPED_THEN_MOVED, ("commit", 0)])
@example([*SCRAPED_THEN_MOVED, ("snapshot", 1), ("write", 0, 1)])
def test_service_writes_the_same_trace_with_native_data_path_and_model(steps):
    assert run(_native, steps) == run(native_model, steps)
