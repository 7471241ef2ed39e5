"""Start and end of a tracing session."""

from __future__ import annotations

import pytest

from stretto.base.errors import LocalProtocolError
from stretto.protos.config import TraceConfig
from stretto.service.session import service_tracing_session
from tests.support.service_setup import event, events, make_config, texts


class TestSessionStart:
    def test_deferred_session_starts_when_start_tracing_is_called(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds", deferred_start=True, duration_ms=1))
        assert producer.calls[-1] == ("setup", "ds")
        setup.advance(1000)
        assert producer.calls[-1] == ("setup", "ds")
        consumer.endpoint.start_tracing()
        setup.run()
        assert producer.calls[-1] == ("start", "ds")
        setup.advance(1)
        assert consumer.disabled == [""]

    def test_second_start_request_does_nothing(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        consumer.endpoint.start_tracing()
        setup.run()
        assert producer.calls.count(("start", "ds")) == 1

    def test_data_source_registered_later_is_set_up_and_started(self, setup):
        setup.enable(make_config("ds"))
        deferred = setup.enable(make_config("ds", deferred_start=True))
        producer = setup.producer("ds")
        setup.run()
        assert producer.calls[1:] == [
            ("tracing setup", 256 * 1024), ("setup", "ds"), ("start", "ds"), ("setup", "ds"),
        ]  # fmt: skip
        deferred.endpoint.start_tracing()
        setup.run()
        assert producer.calls[-1] == ("start", "ds")

    def test_data_source_registered_while_the_session_stops_is_not_started(self, setup):
        first = setup.producer()
        first.register("ds", ack_stop=True)
        consumer = setup.enable(make_config("ds", "late"))
        consumer.endpoint.disable_tracing()
        late = setup.producer("late")
        setup.run()
        assert late.calls == [("connect", "")]
        first.stopped("ds")
        setup.run()
        assert consumer.disabled == [""]

    def test_all_data_sources_started_event_waits_for_acks(self, setup):
        producer = setup.producer("quick")
        producer.register("slow", ack_start=True)
        consumer = setup.enable(make_config("quick", "slow"))
        assert "all_data_sources_started" not in events(setup.read(consumer))
        producer.started("slow")
        producer.started("slow")
        assert events(setup.read(consumer)).count("all_data_sources_started") == 1
        producer.started("slow")
        assert "all_data_sources_started" not in events(setup.read(consumer))

    def test_all_data_sources_started_does_not_wait_for_a_disconnected_producer(self, setup):
        producer = setup.producer()
        producer.register("slow", ack_start=True)
        consumer = setup.enable(make_config("slow"))
        producer.disconnect()
        assert "all_data_sources_started" in events(setup.read(consumer))

    def test_start_ack_of_another_producer_is_ignored(self, setup):
        producer = setup.producer()
        producer.register("slow", ack_start=True)
        consumer = setup.enable(make_config("slow"))
        other = setup.producer()
        other.endpoint.notify_data_source_started(producer.instances["slow"])
        assert "all_data_sources_started" not in events(setup.read(consumer))

    def test_data_source_not_started_after_20_s_is_reported_as_slow(self, setup):
        producer = setup.producer("quick", name="p")
        producer.register("slow", ack_start=True)
        consumer = setup.enable(make_config("quick", "slow"))
        setup.advance(20_000)
        (slow,) = [
            packet.service_event.slow_starting_data_sources
            for packet in setup.read(consumer)
            if packet.has("service_event")
            and packet.service_event.has("slow_starting_data_sources")
        ]
        assert [(s.producer_name, s.data_source_name) for s in slow.data_source] == [("p", "slow")]

    def test_no_slow_start_is_reported_if_all_data_sources_have_started(self, setup):
        setup.producer("quick")
        consumer = setup.enable(make_config("quick"))
        setup.advance(30_000)
        assert "slow_starting_data_sources" not in events(setup.read(consumer))

    def test_incremental_state_is_cleared_periodically_until_the_end(self, setup):
        producer = setup.producer("plain")
        producer.register("clears", clears_state=True)
        incremental = TraceConfig.IncrementalStateConfig(clear_period_ms=500)
        consumer = setup.enable(
            make_config("plain", "clears", incremental_state_config=incremental)
        )
        setup.advance(1000)
        cleared = [what for call, what in producer.calls if call == "clear"]
        assert cleared == [["clears"], ["clears"]]
        consumer.endpoint.disable_tracing()
        setup.advance(1000)
        assert len([1 for call, _ in producer.calls if call == "clear"]) == 2


class TestSessionEnd:
    def test_timed_session_is_flushed_before_it_ends(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds", duration_ms=100))
        producer.writer("ds").write(event("before the end"))
        setup.advance(99)
        assert not producer.flushes
        setup.advance(1)
        assert [flags for _, _, flags in producer.flushes] == [0x12]
        assert producer.calls[-1] == ("stop", "ds")
        assert consumer.disabled == [""]
        packets = setup.read(consumer)
        assert texts(packets) == ["before the end"]
        (stats,) = [packet.trace_stats for packet in packets if packet.has("trace_stats")]
        assert stats.final_flush_outcome == 1

    def test_failed_final_flush_is_reported_in_the_trace(self, setup):
        setup.producer("ds", name="p", answers_flushes=False)
        consumer = setup.enable(make_config("ds", duration_ms=100, flush_timeout_ms=50))
        setup.advance(149)
        assert not consumer.disabled
        setup.advance(1)
        assert consumer.disabled == [""]
        packets = setup.read(consumer)
        assert "last_flush_slow_data_sources" in events(packets)
        assert next(p.trace_stats for p in packets if p.has("trace_stats")).final_flush_outcome == 2

    def test_end_is_reported_after_all_stop_acks(self, setup):
        producer = setup.producer("quick")
        producer.register("slow", ack_stop=True)
        consumer = setup.enable(make_config("quick", "slow"))
        consumer.endpoint.disable_tracing()
        setup.run()
        assert producer.calls[-2:] == [("stop", "quick"), ("stop", "slow")]
        assert not consumer.disabled
        producer.stopped("slow")
        setup.run()
        assert consumer.disabled == [""]

    def test_end_is_reported_at_the_stop_timeout_if_acks_are_missing(self, setup):
        producer = setup.producer()
        producer.register("slow", ack_stop=True)
        config = make_config("slow", data_source_stop_timeout_ms=30)
        consumer = setup.enable(config)
        consumer.endpoint.disable_tracing()
        setup.advance(29)
        assert not consumer.disabled
        setup.advance(1)
        assert consumer.disabled == [""]
        producer.stopped("slow")  # This late ack is ignored.
        setup.run()
        assert consumer.disabled == [""]

    def test_disconnected_producer_counts_as_stopped(self, setup):
        producer = setup.producer()
        producer.register("slow", ack_stop=True)
        consumer = setup.enable(make_config("slow"))
        consumer.endpoint.disable_tracing()
        producer.disconnect()
        setup.run()
        assert consumer.disabled == [""]

    def test_deferred_session_ends_without_waiting_for_stop_acks(self, setup):
        producer = setup.producer()
        producer.register("slow", ack_stop=True)
        consumer = setup.enable(make_config("slow", deferred_start=True))
        consumer.endpoint.disable_tracing()
        setup.run()
        assert consumer.disabled == [""]

    def test_start_ack_after_the_stop_ack_is_ignored(self, setup):
        producer = setup.producer()
        producer.register("a", ack_start=True, ack_stop=True)
        producer.register("b", ack_stop=True)
        consumer = setup.enable(make_config("a", "b"))
        consumer.endpoint.disable_tracing()
        producer.stopped("a")
        producer.started("a")
        producer.stopped("b")
        setup.run()
        assert consumer.disabled == [""]

    def test_only_the_first_error_is_reported(self, setup):
        producer = setup.producer()
        producer.register("slow", ack_stop=True)
        consumer = setup.enable(make_config("slow"))
        setup.session().fail("first")
        setup.session().fail("second")
        producer.stopped("slow")
        setup.run()
        assert consumer.disabled == ["first"]

    def test_ended_session_has_no_timers(self, setup):
        setup.producer("ds")
        incremental = TraceConfig.IncrementalStateConfig(clear_period_ms=10)
        config = make_config("ds", duration_ms=1000, flush_period_ms=10)
        config.incremental_state_config = incremental
        consumer = setup.enable(config)
        consumer.endpoint.disable_tracing()
        setup.run()
        assert not setup.runner.delayed_count

    def test_repeated_disable_and_free_report_the_end_once(self, setup):
        setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        consumer.endpoint.disable_tracing()
        consumer.endpoint.disable_tracing()
        consumer.endpoint.free_buffers()
        consumer.endpoint.free_buffers()
        setup.run()
        assert consumer.disabled == [""]

    def test_freeing_the_buffers_while_stop_acks_are_pending_ends_the_session(self, setup):
        producer = setup.producer()
        producer.register("slow", ack_stop=True)
        consumer = setup.enable(make_config("slow"))
        consumer.endpoint.disable_tracing()
        consumer.endpoint.free_buffers()
        setup.run()
        assert consumer.disabled == [""]
        assert not setup.runner.delayed_count

    def test_freed_session_has_no_timers_flushes_or_buffers(self, setup):
        setup.producer("ds", answers_flushes=False)
        consumer = setup.enable(make_config("ds", duration_ms=500, flush_period_ms=100))
        consumer.flush()
        consumer.endpoint.free_buffers()
        setup.run()
        assert consumer.flushes == [False]
        assert not setup.runner.delayed_count
        assert not setup.service.buffers.ids.in_use

    def test_unregistering_a_data_source_stops_its_instance(self, setup):
        producer = setup.producer("a", "b")
        setup.enable(make_config("a", "b"))
        producer.endpoint.unregister_data_source("a")
        setup.run()
        assert producer.calls[-1] == ("stop", "a")
        assert [each.source.name for each in setup.session().instances] == ["b"]

    def test_lifecycle_events_are_recorded_at_start_flush_and_end(self, setup):
        setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        done = "read_tracing_buffers_completed"
        assert events(setup.read(consumer)) == ["tracing_started", "all_data_sources_started", done]
        consumer.flush()
        setup.run()
        assert events(setup.read(consumer)) == ["flush_started", "all_data_sources_flushed", done]
        consumer.endpoint.disable_tracing()
        setup.run()
        assert events(setup.read(consumer)) == ["tracing_disabled", done]

    def test_invalid_state_transition_is_an_error(self, setup):
        setup.enable(make_config())
        session = setup.session()
        assert session.state == service_tracing_session.STARTED
        with pytest.raises(LocalProtocolError, match="can't go from STARTED to CONFIGURED"):
            session._move_to(service_tracing_session.CONFIGURED)
