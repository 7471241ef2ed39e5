"""Consumer methods that detach, observe, query and change the config."""

from __future__ import annotations

import pytest

from stretto.protos.config import TraceConfig
from stretto.protos.ipc import ObservableEvents
from stretto.service.session.config_validation import check_config
from tests.support.service_setup import UID, data_source, make_config, texts

INSTANCES = ObservableEvents.TYPE_DATA_SOURCES_INSTANCES
ALL_STARTED = ObservableEvents.TYPE_ALL_DATA_SOURCES_STARTED


def answers(setup, method, *arguments, **more):
    """Return the answers that a consumer method passes to its callback."""
    given = []
    method(*arguments, given.append, **more)
    setup.run()
    return given


class TestDetachedSession:
    def test_attached_consumer_reads_the_detached_session(self, setup):
        producer = setup.producer("ds")
        config = make_config("ds", duration_ms=60_000)
        first = setup.enable(config)
        assert answers(setup, first.endpoint.detach, "key") == [True]
        first.endpoint.disconnect()
        setup.write(producer, "data")
        second = setup.consumer()
        assert answers(setup, second.endpoint.attach, "key") == [config.encode()]
        second.endpoint.disable_tracing()
        setup.run()
        assert second.disabled == [""]
        assert texts(setup.read(second)) == ["data"]
        assert not first.disabled

    def test_detached_session_can_be_attached_only_by_its_user(self, setup):
        first = setup.enable(make_config())
        assert answers(setup, first.endpoint.detach, "key") == [True]
        assert answers(setup, setup.consumer(5).endpoint.attach, "key") == [None]
        assert answers(setup, setup.consumer().endpoint.attach, "other") == [None]
        assert answers(setup, first.endpoint.attach, "key") != [None]

    def test_detach_keys_are_unique_per_user(self, setup):
        first, second = setup.enable(make_config()), setup.enable(make_config())
        other = setup.enable(make_config(), setup.consumer(5))
        assert answers(setup, first.endpoint.detach, "key") == [True]
        assert answers(setup, second.endpoint.detach, "key") == [False]
        assert answers(setup, other.endpoint.detach, "key") == [True]
        assert second.endpoint.session is not None

    def test_detach_without_a_session_fails(self, setup):
        consumer = setup.consumer()
        assert answers(setup, consumer.endpoint.detach, "key") == [False]
        assert answers(setup, setup.enable(make_config()).endpoint.detach, "") == [False]

    def test_consumer_with_a_session_cannot_attach(self, setup):
        first, second = setup.enable(make_config()), setup.enable(make_config())
        answers(setup, first.endpoint.detach, "key")
        assert answers(setup, second.endpoint.attach, "key") == [None]

    def test_detached_session_is_freed_when_its_duration_ends(self, setup, tmp_path):
        producer = setup.producer("ds")
        path = tmp_path / "trace"
        config = make_config("ds", duration_ms=1000, write_into_file=True, output_path=str(path))
        first = setup.enable(config)
        answers(setup, first.endpoint.detach, "key")
        first.endpoint.disconnect()
        setup.write(producer, "data", flush=False)
        setup.advance(1000)
        assert not setup.service.sessions
        assert b"data" in path.read_bytes()
        assert answers(setup, setup.consumer().endpoint.attach, "key") == [None]

    def test_consumer_that_attaches_to_an_ended_session_gets_its_error(self, setup):
        fd_full = open("/dev/full", "wb")  # noqa: SIM115  # closed below
        producer = setup.producer("ds")
        first = setup.enable(make_config("ds", write_into_file=True), fd=fd_full.fileno())
        fd_full.close()
        answers(setup, first.endpoint.detach, "key")
        setup.write(producer, "data")
        setup.advance(5000)
        second = setup.consumer()
        answers(setup, second.endpoint.attach, "key")
        assert "No space left" in second.disabled[0]

    def test_attached_consumer_gets_the_all_started_event(self, setup):
        producer = setup.producer()
        producer.register("ds", ack_start=True)
        first = setup.enable(make_config("ds"))
        answers(setup, first.endpoint.detach, "key")
        producer.started("ds")
        second = setup.consumer()
        second.observe(ALL_STARTED)
        answers(setup, second.endpoint.attach, "key")
        assert [each.all_data_sources_started for each in second.events] == [True]


class TestObserveEvents:
    def changes(self, consumer):
        return [
            (change.producer_name, change.data_source_name, change.state)
            for events in consumer.events
            for change in events.instance_state_changes
        ]

    def test_instance_state_changes_are_reported(self, setup):
        producer = setup.producer(name="p")
        producer.register("ds", ack_start=True, ack_stop=True)
        consumer = setup.enable(make_config("ds"))
        consumer.observe(INSTANCES)
        setup.run()
        assert self.changes(consumer) == []
        producer.started("ds")
        setup.run()
        assert self.changes(consumer) == [("p", "ds", 2)]
        consumer.endpoint.disable_tracing()
        setup.run()
        assert len(self.changes(consumer)) == 1
        producer.stopped("ds")
        setup.run()
        assert self.changes(consumer)[1:] == [("p", "ds", 1)]

    def test_new_observer_gets_the_current_instance_states(self, setup):
        setup.producer("a", "b", name="p")
        consumer = setup.enable(make_config("a", "b"))
        consumer.observe(INSTANCES)
        setup.run()
        assert self.changes(consumer) == [("p", "a", 2), ("p", "b", 2)]
        assert len(consumer.events) == 1

    def test_deferred_instances_are_reported_as_stopped(self, setup):
        setup.producer("ds", name="p")
        consumer = setup.enable(make_config("ds", deferred_start=True))
        consumer.observe(INSTANCES)
        consumer.endpoint.start_tracing()
        setup.run()
        assert self.changes(consumer) == [("p", "ds", 1), ("p", "ds", 2)]

    def test_unregistered_data_source_is_reported_as_stopped(self, setup):
        producer = setup.producer("ds", name="p")
        consumer = setup.enable(make_config("ds"))
        consumer.observe(INSTANCES)
        setup.run()
        producer.endpoint.unregister_data_source("ds")
        setup.run()
        assert self.changes(consumer)[-1] == ("p", "ds", 1)

    def test_instance_is_reported_as_stopped_after_the_stop_timeout(self, setup):
        producer = setup.producer(name="p")
        producer.register("ds", ack_stop=True)
        consumer = setup.enable(make_config("ds"))
        consumer.observe(INSTANCES)
        consumer.endpoint.disable_tracing()
        setup.advance(5000)
        assert self.changes(consumer)[-1] == ("p", "ds", 1)

    def test_observing_no_event_type_stops_events(self, setup):
        setup.producer("ds")
        consumer = setup.enable(make_config("ds", deferred_start=True))
        consumer.observe(INSTANCES)
        consumer.observe(0)
        consumer.endpoint.start_tracing()
        setup.run()
        assert consumer.events == []

    def all_started(self, consumer):
        return sum(events.all_data_sources_started for events in consumer.events)

    def test_all_started_event_is_sent_once_per_session(self, setup):
        producer = setup.producer()
        for name in ("a", "b"):
            producer.register(name, ack_start=True)
        consumer = setup.consumer()
        consumer.observe(ALL_STARTED)
        setup.enable(make_config("a", "b"), consumer)
        producer.started("a")
        setup.run()
        assert self.all_started(consumer) == 0
        producer.started("b")
        setup.run()
        setup.producer("a")  # A producer that connects later causes no second event.
        setup.run()
        assert self.all_started(consumer) == 1
        consumer.endpoint.free_buffers()
        setup.enable(make_config(), consumer)
        assert self.all_started(consumer) == 2

    @pytest.mark.parametrize("sources", [(), ("ds",)])
    def test_all_started_event_is_sent_at_once_if_no_ack_is_pending(self, setup, sources):
        setup.producer(*sources)
        consumer = setup.consumer()
        consumer.observe(ALL_STARTED)
        setup.enable(make_config("ds"), consumer)
        assert self.all_started(consumer) == 1

    def test_all_started_event_waits_for_data_sources_that_ack_their_start(self, setup):
        producer = setup.producer("quick")
        producer.register("slow", ack_start=True)
        consumer = setup.consumer()
        consumer.observe(ALL_STARTED)
        setup.enable(make_config("quick", "slow"), consumer)
        assert self.all_started(consumer) == 0
        producer.started("slow")
        setup.run()
        assert self.all_started(consumer) == 1

    def test_late_observer_gets_the_all_started_event_once(self, setup):
        consumer = setup.enable(make_config())
        consumer.observe(ALL_STARTED)
        setup.run()
        consumer.observe(ALL_STARTED | INSTANCES)
        setup.run()
        assert self.all_started(consumer) == 1


class TestServiceQueries:
    def test_service_state_lists_producers_sources_and_sessions(self, setup):
        producer = setup.producer("ds", name="p", uid=1, pid=2, sdk_version="v9")
        config = make_config("ds", buffers=2, duration_ms=7, unique_session_name="s")
        config.bugreport_score, config.bugreport_filename = 3, "file.gz"
        consumer = setup.enable(config)
        setup.enable(make_config(deferred_start=True), setup.consumer(77))
        (state,) = answers(setup, consumer.endpoint.query_service_state)
        (answer,) = state.producers
        assert (answer.id, answer.name, answer.uid, answer.pid) == (1, "p", 1, 2)
        assert answer.sdk_version == "v9"
        assert not answer.has("machine_id")
        (source,) = state.data_sources
        assert source.ds_descriptor.name == "ds"
        assert source.producer_id == producer.endpoint.producer_id
        (session,) = state.tracing_sessions  # The other user's session is counted, not listed.
        assert (session.id, session.consumer_uid, session.state) == (1, UID, "STARTED")
        assert (session.unique_session_name, session.buffer_size_kb) == ("s", [128, 128])
        assert (session.duration_ms, session.num_data_sources) == (7, 1)
        assert (session.bugreport_score, session.bugreport_filename) == (3, "file.gz")
        assert session.start_realtime_ns == setup.clock.walltime_ns()
        assert session.is_started
        assert (state.num_sessions, state.num_sessions_started) == (2, 1)
        assert state.supports_tracing_sessions
        assert state.tracing_service_version == "test"

    def test_root_gets_the_list_of_all_sessions(self, setup):
        for uid in (1, 2):
            setup.enable(make_config(), setup.consumer(uid))
        (state,) = answers(setup, setup.consumer(0).endpoint.query_service_state)
        assert [session.consumer_uid for session in state.tracing_sessions] == [1, 2]

    def test_service_state_can_be_limited_to_sessions(self, setup):
        setup.producer("ds")
        query = setup.enable(make_config()).endpoint.query_service_state
        (state,) = answers(setup, query, sessions_only=True)
        assert not state.producers
        assert not state.data_sources
        assert len(state.tracing_sessions) == 1

    def test_service_state_contains_the_machine_of_a_producer(self, setup):
        setup.producer(name="far", machine_id=9, machine_name="box")
        (state,) = answers(setup, setup.consumer().endpoint.query_service_state)
        assert (state.producers[0].machine_id, state.producers[0].machine_name) == (9, "box")

    def test_service_state_shows_the_trigger_timeout_as_duration(self, setup):
        waits = TraceConfig.TriggerConfig(trigger_mode=2, trigger_timeout_ms=99)
        consumer = setup.enable(make_config(trigger_config=waits))
        (state,) = answers(setup, consumer.endpoint.query_service_state)
        assert state.tracing_sessions[0].duration_ms == 99

    def test_capabilities_list_supported_events_and_methods(self, setup):
        (answer,) = answers(setup, setup.consumer().endpoint.query_capabilities)
        assert answer.observable_events == [1, 2, 4]
        assert answer.has_query_capabilities
        assert answer.has_trace_config_output_path
        assert answer.has_clone_session

    def test_trace_stats_are_none_without_a_session(self, setup):
        consumer = setup.enable(make_config())
        assert answers(setup, consumer.endpoint.get_trace_stats) == [
            consumer.endpoint.trace_stats()
        ]
        assert answers(setup, setup.consumer().endpoint.get_trace_stats) == [None]


class TestChangeTraceConfig:
    def change(self, setup, consumer, *sources):
        config = make_config()
        config.data_sources = list(sources)
        consumer.endpoint.change_trace_config(config.encode())
        setup.run()

    def enable(self, setup, *sources):
        config = make_config()
        config.data_sources = list(sources)
        return setup.enable(config)

    def filtered(self, name, *producers, **fields):
        source = data_source(name)
        source.producer_name_filter = list(producers)
        for field, value in fields.items():
            setattr(source, field, value)
        return source

    def test_extended_name_filter_starts_data_sources_of_more_producers(self, setup):
        producers = [setup.producer("ds", "new", name=f"p{n}") for n in (1, 2, 3)]
        consumer = self.enable(setup, self.filtered("ds", "p1"))
        started = [("start", "ds") in producer.calls for producer in producers]
        assert started == [True, False, False]
        self.change(setup, consumer, self.filtered("ds", "p1", "p2"), self.filtered("new"))
        started = [producer.calls.count(("start", "ds")) for producer in producers]
        assert started == [1, 1, 0]
        assert not any(("start", "new") in producer.calls for producer in producers)
        self.change(setup, consumer, self.filtered("ds", producer_name_regex_filter=["p[13]"]))
        started = [producer.calls.count(("start", "ds")) for producer in producers]
        assert started == [1, 1, 1]
        late = setup.producer("ds", name="p2")
        setup.run()
        assert ("setup", "ds") not in late.calls

    def test_changed_filter_of_one_of_two_data_sources_starts_only_this_data_source(self, setup):
        producer = setup.producer("a", "b", name="p")
        consumer = self.enable(setup, self.filtered("a", "p"), self.filtered("b", "q"))
        self.change(setup, consumer, self.filtered("a", "p"), self.filtered("b", "p"))
        assert [call for call, _ in producer.calls].count("start") == 2

    def test_changed_filter_of_a_deferred_session_does_not_start_data_sources(self, setup):
        producer = setup.producer("ds", name="p")
        config = make_config(deferred_start=True)
        config.data_sources = [self.filtered("ds", "q")]
        consumer = setup.enable(config)
        self.change(setup, consumer, self.filtered("ds", "p"))
        assert producer.calls[-1] == ("setup", "ds")

    def test_config_change_is_ignored_if_it_is_invalid_or_late_or_has_no_session(self, setup):
        producer = setup.producer("ds", name="p")
        consumer = self.enable(setup, self.filtered("ds", "q"))
        consumer.endpoint.change_trace_config(b"\xff\xff")
        setup.consumer().endpoint.change_trace_config(b"")
        consumer.endpoint.disable_tracing()
        self.change(setup, consumer, self.filtered("ds", "p"))
        assert ("setup", "ds") not in producer.calls


def test_bugreport_filename_with_a_path_is_refused():
    from stretto.base.errors import ConfigError

    check_config(make_config(bugreport_filename="a-Z_0.x"), has_fd=False)
    with pytest.raises(ConfigError, match="bugreport_filename"):
        check_config(make_config(bugreport_filename="../x"), has_fd=False)
