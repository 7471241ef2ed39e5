"""The tracing service: registration of producers and data sources, limits of sessions."""

from __future__ import annotations

import pytest

from stretto.base.errors import SessionError
from stretto.protos.config import DataSourceDescriptor, TraceConfig
from stretto.service.tracing_service import TracingService
from tests.support.service_setup import UID, data_source, make_config


class TestProducerRegistry:
    def test_producers_and_data_sources_are_registered_and_unregistered(self, setup):
        first, second = setup.producer("one", name="first"), setup.producer(name="second")
        assert set(setup.service.producers.values()) == {first.endpoint, second.endpoint}
        assert first.endpoint.producer_id != second.endpoint.producer_id
        first.endpoint.unregister_data_source("one")
        second.register("two")
        assert [source.name for source in setup.service.data_sources] == ["two"]
        first.disconnect()
        second.disconnect()
        setup.run()
        assert not setup.service.producers
        assert not setup.service.data_sources
        assert setup.service.producers_seen == 2

    def test_producer_callbacks_are_in_order_and_end_with_disconnect(self, setup):
        producer = setup.producer("ds")
        setup.enable(make_config("ds"))
        producer.disconnect()
        setup.run()
        assert [call for call, _ in producer.calls] == [
            "connect", "tracing setup", "setup", "start", "disconnect",
        ]  # fmt: skip

    def test_second_disconnect_does_nothing(self, setup):
        producer = setup.producer("ds")
        producer.disconnect()
        producer.disconnect()
        producer.register("late")
        setup.run()
        assert producer.calls.count(("disconnect", "")) == 1
        assert not setup.service.data_sources

    def test_number_of_data_sources_per_producer_is_bounded(self, setup):
        producer = setup.producer(*(f"ds {i}" for i in range(300)))
        assert len(setup.service.data_sources) == 256
        assert not any(s.name == "" for s in setup.service.data_sources)
        producer.register("")
        assert len(setup.service.data_sources) == 256

    def test_data_source_update_needs_the_registered_id_and_name(self, setup):
        producer = setup.producer()
        producer.register("ds", ident=1)
        other = setup.producer()
        other.register("ds", ident=1)
        updated = DataSourceDescriptor(name="ds", id=1, no_flush=True)
        producer.endpoint.update_data_source(updated)
        assert [source.header.no_flush for source in setup.service.data_sources] == [True, False]
        producer.endpoint.update_data_source(DataSourceDescriptor(name="ds", id=2))
        producer.endpoint.update_data_source(DataSourceDescriptor(name="ds"))
        assert next(iter(setup.service.data_sources)).descriptor == updated.encode()

    def test_sync_callback_runs_after_all_earlier_callbacks(self, setup):
        producer = setup.producer("ds")
        setup.consumer().enable(make_config("ds"))
        producer.endpoint.sync(lambda: producer.calls.append(("sync", "")))
        setup.run()
        assert producer.calls[-1] == ("sync", "")

    def test_producer_above_the_maximum_number_is_refused(self, setup, monkeypatch):
        monkeypatch.setattr(setup.service._producer_ids, "_maximum", 1)
        setup.producer()
        with pytest.raises(SessionError, match="the most"):
            setup.producer()


class TestServiceSessions:
    def test_data_sources_start_on_enable_and_stop_on_disable(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        assert producer.calls[1:] == [
            ("tracing setup", 256 * 1024), ("setup", "ds"), ("start", "ds"),
        ]  # fmt: skip
        consumer.endpoint.disable_tracing()
        setup.run()
        assert producer.calls[-1] == ("stop", "ds")
        assert consumer.disabled == [""]

    def test_consumer_cannot_enable_a_second_session_before_it_frees_the_first_session(self, setup):
        consumer = setup.enable(make_config())
        consumer.enable(make_config())
        setup.run()
        assert len(consumer.disabled) == 1
        assert "free its buffers" in consumer.disabled[0]
        consumer.endpoint.free_buffers()
        setup.run()
        assert consumer.disabled[1:] == [""]
        consumer.enable(make_config())
        setup.run()
        assert len(consumer.disabled) == 2
        assert len(setup.service.sessions) == 1

    def test_number_of_sessions_per_user_is_limited(self, setup):
        consumers = [setup.enable(make_config(), setup.consumer(1)) for _ in range(6)]
        assert [len(c.disabled) for c in consumers] == [0] * 5 + [1]
        assert "User 1 has 5 sessions" in consumers[-1].disabled[0]
        assert not setup.enable(make_config(), setup.consumer(2)).disabled
        consumers[0].endpoint.disable_tracing()  # Ended sessions count until they are freed.
        assert setup.enable(make_config(), setup.consumer(1)).disabled
        consumers[0].endpoint.free_buffers()
        assert not setup.enable(make_config(), setup.consumer(1)).disabled

    def test_total_number_of_sessions_is_limited(self, setup):
        for number in range(15):
            assert not setup.enable(make_config(), setup.consumer(number)).disabled
        assert "15 sessions" in setup.enable(make_config(), setup.consumer(99)).disabled[0]

    def test_data_source_configs_contain_the_session_id(self, setup):
        producer = setup.producer("a", "b")
        consumer = setup.enable(make_config("a", "b"))
        ids = {config.tracing_session_id for config in producer.configs.values()}
        assert ids == {consumer.endpoint.session_id}
        other = setup.enable(make_config("a"))
        assert producer.configs["a"].tracing_session_id == other.endpoint.session_id
        assert other.endpoint.session_id not in ids

    def test_service_sets_the_data_source_config_fields_that_it_owns(self, setup):
        producer = setup.producer("ds")
        config = make_config(
            "ds", duration_ms=1000, data_source_stop_timeout_ms=7, enable_extra_guardrails=True
        )
        config.data_sources[0].config.legacy_config = "kept"
        config.data_sources[0].config.tracing_session_id = 99  # The service replaces this id.
        setup.enable(config)
        got = producer.configs["ds"]
        assert got.legacy_config == "kept"
        assert (got.trace_duration_ms, got.stop_timeout_ms) == (1000, 7)
        assert got.tracing_session_id == 1
        assert got.enable_extra_guardrails
        assert got.has("session_initiator")
        assert not got.has("prefer_suspend_clock_for_duration")

    def test_unknown_config_fields_reach_the_producer(self, setup):
        producer = setup.producer("ds")
        unknown = b"\xfa\xff\x0f\x03abc"  # No schema declares this field.
        encoded = data_source("ds").config.encode() + unknown
        config = make_config().encode()
        entry = b"\x0a" + bytes([len(encoded)]) + encoded
        consumer = setup.consumer()
        consumer.endpoint.enable_tracing(config + b"\x12" + bytes([len(entry)]) + entry)
        setup.run()
        assert unknown in producer.configs["ds"].encode()

    def test_only_producers_that_match_a_name_filter_are_started(self, setup):
        producers = [setup.producer("ds", name=name) for name in ("one", "two", "three")]
        config = make_config()
        config.data_sources = [
            TraceConfig.DataSource(
                config=data_source("ds").config,
                producer_name_filter=["one"],
                producer_name_regex_filter=["t.o", "thre"],
            )
        ]
        setup.enable(config)
        assert [bool(producer.configs) for producer in producers] == [True, True, False]

    @pytest.mark.parametrize(
        ("machines", "expected"), [([], True), (["host", "x"], True), (["x"], False)]
    )
    def test_producer_is_set_up_only_if_the_machine_filter_matches(self, setup, machines, expected):
        producer = setup.producer("ds")
        config = make_config("ds")
        config.data_sources[0].machine_name_filter = machines
        setup.enable(config)
        assert bool(producer.configs) == expected

    def test_consumer_disconnect_ends_its_session(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(make_config("ds"))
        consumer.endpoint.disconnect()
        setup.run()
        assert producer.calls[-1] == ("stop", "ds")
        assert not setup.service.sessions
        assert not consumer.connected
        assert not setup.runner.delayed_count

    def test_data_sources_of_a_reconnected_producer_are_started(self, setup):
        setup.producer("ds").disconnect()
        setup.enable(make_config("ds"))
        setup.producer("ds").disconnect()
        second = setup.producer("ds")
        setup.run()
        assert second.calls[-1] == ("start", "ds")

    def test_named_target_buffer_is_resolved_to_its_id(self, setup):
        producer = setup.producer("a", "b")
        config = make_config(buffers=2)
        config.buffers[0].name, config.buffers[1].name = "first", "second"
        config.data_sources = [
            data_source("a", target_buffer_name="second"),
            data_source("b", target_buffer_name="first", target_buffer=0),
        ]
        setup.enable(config)
        buffers = setup.session().buffers
        assert producer.configs["a"].target_buffer == buffers[1]
        assert producer.configs["b"].target_buffer == buffers[0]

    def test_malformed_config_is_refused(self, setup):
        consumer = setup.consumer()
        consumer.endpoint.enable_tracing(b"\x0a\xff")
        setup.run()
        assert "malformed" in consumer.disabled[0]
        assert not setup.service.sessions

    def test_failure_to_create_a_buffer_frees_the_buffers_created_before(self, setup):
        config = make_config(buffers=2)
        config.buffers[1].fill_policy = 2
        real = setup.service.buffers.table

        class NoMemory:
            def create(self, ident, size, policy, fd=-1):
                if policy == 2:
                    raise MemoryError
                real.create(ident, size, policy, fd)

            def remove(self, ident):
                real.remove(ident)

        setup.service.buffers.table = NoMemory()
        consumer = setup.enable(config)
        assert "out of memory" in consumer.disabled[0]
        assert not setup.service.buffers.ids.in_use

    def test_consumer_calls_without_a_session_do_nothing(self, setup):
        consumer = setup.consumer()
        consumer.endpoint.start_tracing()
        consumer.endpoint.disable_tracing()
        consumer.endpoint.free_buffers()
        consumer.endpoint.read_buffers()
        consumer.flush()
        setup.run()
        assert consumer.endpoint.trace_stats() is None
        assert (consumer.reads, consumer.flushes, consumer.disabled) == ([(0, False)], [False], [])

    def test_semaphores_limit_the_number_of_running_sessions(self, setup):
        def config(count):
            semaphore = TraceConfig.SessionSemaphore(name="s", max_other_session_count=count)
            return make_config(session_semaphores=[semaphore])

        first = setup.enable(config(1))
        assert not setup.enable(config(3)).disabled
        assert "emaphore" in setup.enable(config(3)).disabled[0]
        first.endpoint.disable_tracing()  # An ended session holds no semaphore.
        assert not setup.enable(config(1)).disabled

    def test_duplicate_unique_session_name_is_refused(self, setup):
        setup.enable(make_config(unique_session_name="a"))
        assert not setup.enable(make_config(unique_session_name="b")).disabled
        assert "'a'" in setup.enable(make_config(unique_session_name="a")).disabled[0]

    def test_session_with_guardrails_cannot_restart_within_300_s(self, setup):
        config = make_config(enable_extra_guardrails=True, unique_session_name="foo")
        setup.enable(config).endpoint.free_buffers()
        assert "300 s" in setup.enable(config).disabled[0]
        config.unique_session_name = "bar"
        setup.enable(config).endpoint.free_buffers()
        setup.advance(300_000)
        assert not setup.enable(config).disabled


def test_trace_uuid_is_random_and_of_version_4(setup):
    service = TracingService(setup.runner, setup.clock, random_bytes=lambda n: b"\xff" * n)
    assert service.context.new_uuid() == (0xFFFFFFFF_FFFF_4FFF, 0xBFFFFFFF_FFFFFFFF)
    assert setup.service.context.uid == UID
