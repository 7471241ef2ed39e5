"""Small modules of the service: ids, geometry, events, timers, encoders, clocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto import _native
from stretto.base.clock import SystemClock
from stretto.protos.config import TraceConfig
from stretto.service.endpoints.shm_geometry import valid_geometry, wished_geometry
from stretto.service.id_allocator import IdAllocator
from stretto.service.output import service_packets
from stretto.service.output.lifecycle_events import LifecycleEvents
from stretto.service.output.packet_encoder import framed, number, whole_packets
from stretto.service.output.service_packets import ServicePackets
from stretto.service.timers import Timers
from stretto.testing.decoded_packets import split_packets
from stretto.testing.fake_clock import FakeClock
from stretto.testing.fake_task_runner import FakeTaskRunner

KB = 1024


class TestIdAllocator:
    def test_ids_ascend_wrap_around_and_skip_ids_in_use(self):
        ids = IdAllocator(4)
        assert [ids.allocate() for _ in range(3)] == [1, 2, 3]
        ids.free(2)
        assert [ids.allocate() for _ in range(2)] == [4, 2]
        assert ids.allocate() == 0
        ids.free(3)
        ids.free(1)
        assert [ids.allocate() for _ in range(3)] == [3, 1, 0]


class TestSharedMemoryGeometry:
    @pytest.mark.parametrize(
        ("wished", "result"),
        [
            ((0, 0), (256, 4)),
            ((16, 16), (16, 16)),
            ((32, 4), (32, 4)),
            ((3, 2), (256, 4)),
            ((1 << 21, 1 << 21), (32 * KB, 32)),
            ((18, 8), (256, 4)),
            ((20, 8), (256, 4)),
            ((28, 28), (256, 4)),
            ((8, 16), (256, 4)),
            ((0, 12), (256, 4)),
        ],
    )
    def test_invalid_memory_sizes_are_replaced_by_the_default_geometry(self, wished, result):
        size, page = wished
        assert valid_geometry(size * KB, page * KB) == (result[0] * KB, result[1] * KB)

    def test_memory_sizes_that_are_not_multiples_of_4096_are_replaced(self):
        assert valid_geometry(4097, 4096) == (256 * KB, 4096)
        assert valid_geometry(8192, 4100) == (256 * KB, 4096)

    def test_memory_sizes_in_the_config_override_hints_of_the_producer(self):
        config = TraceConfig(
            producers=[
                TraceConfig.ProducerConfig(producer_name="a", shm_size_kb=64),
                TraceConfig.ProducerConfig(producer_name="a", shm_size_kb=1, page_size_kb=1),
                TraceConfig.ProducerConfig(producer_name="b", page_size_kb=8),
            ]
        )
        assert wished_geometry(config, "a", 1, 2) == (64 * KB, 2)
        assert wished_geometry(config, "b", 1, 2) == (1, 8 * KB)
        assert wished_geometry(config, "c", 1, 2) == (1, 2)


class TestLifecycleEvents:
    def test_last_event_of_each_kind_and_the_last_64_flush_events_are_kept(self):
        clock = FakeClock(boottime_ns=0)
        events = LifecycleEvents(clock)
        for _ in range(70):
            clock.advance_ns(1)
            events.add(service_packets.LAST_FLUSH_SLOW_DATA_SOURCES, [("p", "d")])
            events.add(service_packets.FLUSH_STARTED)
        build = ServicePackets(uid=0)
        packets = events.packets(build)
        assert len(packets) == 65
        assert packets[0] == build.service_event(7, service_packets.FLUSH_STARTED)
        last = service_packets.LAST_FLUSH_SLOW_DATA_SOURCES
        assert packets[-2] == build.service_event(70, last, [("p", "d")])

    def test_service_event_names_at_most_32_data_sources(self):
        events = LifecycleEvents(FakeClock())
        events.add(service_packets.SLOW_STARTING_DATA_SOURCES, [("p", "d")] * 40)
        (packet,) = events.packets(ServicePackets(uid=0))
        assert packet.count(b"\x0a\x01p\x12\x01d") == 32


class TestSessionTimers:
    def test_timer_set_again_replaces_its_task(self):
        runner = FakeTaskRunner()
        timers = Timers(runner, runner.clock)
        ran = []
        timers.once("t", 10, lambda: ran.append("first"))
        timers.once("t", 20, lambda: ran.append("second"))
        runner.advance(30)
        assert ran == ["second"]

    def test_periodic_tasks_run_at_multiples_of_the_period(self):
        runner = FakeTaskRunner()
        timers = Timers(runner, runner.clock)
        runner.clock.advance_ms(70)
        ran = []
        timers.every("t", 100, lambda: ran.append(runner.clock.walltime_ns() // 10**6 % 100))
        runner.advance(29)
        assert ran == []
        runner.advance(201)
        assert ran == [0, 0, 0]
        timers.cancel_all()
        runner.advance(1000)
        assert len(ran) == 3
        assert not runner.delayed_count

    def test_timer_counts_time_of_suspension_if_requested(self):
        """The task runner's clock stands still while the machine is suspended."""
        runner, clock, ran = FakeTaskRunner(), FakeClock(), []
        timers = Timers(runner, clock)
        timers.once_counting_suspend("t", 10_000, lambda: ran.append("done"))
        clock.advance_ms(1000)
        runner.advance(1000)
        assert not ran
        # The machine is suspended for 9 s, which the task runner doesn't count.
        clock.advance_ms(9000)
        runner.advance(999)
        assert not ran
        runner.advance(1)
        assert ran == ["done"]
        assert not runner.delayed_count

    def test_timer_that_counts_suspension_is_on_time_if_there_is_no_suspension(self):
        runner, ran = FakeTaskRunner(), []
        timers = Timers(runner, runner.clock)
        timers.once_counting_suspend("t", 2500, lambda: ran.append("done"))
        timers.once_counting_suspend("u", 2500, lambda: ran.append("never"))
        timers.cancel("u")
        runner.advance(2499)
        assert not ran
        runner.advance(1)
        assert ran == ["done"]

    def test_task_can_cancel_its_own_timer(self):
        runner = FakeTaskRunner()
        timers = Timers(runner, runner.clock)
        ran = []

        def task():
            ran.append(1)
            timers.cancel("t")

        timers.every("t", 10, task)
        runner.advance(100)
        assert ran == [1]


class TestPacketEncoder:
    @pytest.mark.parametrize(
        ("value", "encoded"),
        [(0, "00"), (127, "7f"), (128, "8001"), (-1, "ffffffffffffffffff01"), (300, "ac02")],
    )
    def test_integers_are_encoded_as_varints(self, value, encoded):
        assert number(1, value).hex() == "08" + encoded

    @given(st.lists(st.binary(max_size=300)), st.integers(0, 2000))
    def test_prefix_of_a_trace_ends_between_two_packets(self, packets, limit):
        trace = b"".join(framed(packet) for packet in packets)
        end = whole_packets(trace, limit)
        kept = list(split_packets(trace[:end]))
        assert kept == packets[: len(kept)]
        assert end < limit or not end
        if len(kept) < len(packets):
            assert end + len(framed(packets[len(kept)])) >= limit


class TestTimeStampCounter:
    def test_time_stamp_counter_is_the_last_clock_of_a_snapshot_if_available(self):
        plain = [ident for ident, _ in SystemClock().snapshot()]
        assert plain == [6, 2, 4, 1, 3, 5]
        assert [ident for ident, _ in SystemClock(lambda: None).snapshot()] == plain
        assert SystemClock(lambda: 123).snapshot()[-1] == (9, 123)

    def test_time_stamp_counter_increases(self):
        first, second = _native.read_tsc(), _native.read_tsc()
        assert first is None or 0 < first < second
