"""Triggers that start, stop and clone sessions."""

from __future__ import annotations

import pytest

from stretto.base.errors import ConfigError
from stretto.protos.config import TraceConfig
from stretto.protos.ipc import ObservableEvents
from stretto.service.limits import MAX_RECEIVED_TRIGGERS
from stretto.service.session.config_validation import check_config
from stretto.service.session.triggers import TriggerHistory
from stretto.service.tracing_service import MAX_UNKNOWN_TRIGGERS
from stretto.testing import FakeClock
from tests.support.service_setup import Setup, kinds, make_config, texts

Triggers = TraceConfig.TriggerConfig
START, STOP, CLONE = 1, 2, 4
HOUR_MS = 3600 * 1000


def trigger(name, delay=1, **fields):
    return Triggers.Trigger(name=name, stop_delay_ms=delay, **fields)


def config_of(mode, *triggers, timeout=30_000, **fields):
    waits = Triggers(trigger_mode=mode, triggers=triggers, trigger_timeout_ms=timeout)
    return make_config("ds", trigger_config=waits, **fields)


def activate(setup, producer, *names):
    producer.endpoint.activate_triggers(names)
    setup.run()


def started(producer):
    return ("start", "ds") in producer.calls


def received(packets):
    return [
        (p.trigger.trigger_name, p.trigger.producer_name, p.trigger.trusted_producer_uid)
        for p in packets
        if p.has("trigger")
    ]


class TestStartTriggers:
    def test_session_started_by_a_trigger_ends_after_the_stop_delay(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(config_of(START, trigger("go", 500)))
        assert ("setup", "ds") in producer.calls
        assert not started(producer)
        activate(setup, producer, "go")
        assert started(producer)
        setup.write(producer, "data")
        setup.advance(499)
        assert not consumer.disabled
        setup.advance(1)
        assert consumer.disabled == [""]
        assert texts(setup.read(consumer)) == ["data"]

    def test_clock_snapshots_of_a_triggered_session_are_in_order(self, setup, monkeypatch):
        read = FakeClock.snapshot
        monkeypatch.setattr(FakeClock, "snapshot", lambda self: self.advance_ns(9) or read(self))
        producer = setup.producer("ds")
        consumer = setup.enable(config_of(START, trigger("go", 500)))
        activate(setup, producer, "go")
        setup.advance(500)
        packets = setup.read(consumer)
        boot = [p.clock_snapshot.clocks[0].timestamp for p in packets if p.has("clock_snapshot")]
        assert len(boot) == 2
        assert boot == sorted(boot)

    def test_session_without_its_start_trigger_ends_at_the_timeout(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(config_of(START, trigger("go"), timeout=100))
        setup.advance(99)
        assert not consumer.disabled
        setup.advance(1)
        assert consumer.disabled == [""]
        assert not started(producer)
        assert setup.read(consumer) == []

    def test_start_trigger_cancels_the_timeout(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(config_of(START, trigger("go", 10_000), timeout=100))
        activate(setup, producer, "go")
        setup.advance(5000)
        assert not consumer.disabled

    @pytest.mark.parametrize(("name", "starts"), [("right", True), ("rights", False)])
    def test_start_trigger_counts_only_if_the_producer_name_matches(self, setup, name, starts):
        producer = setup.producer("ds", name=name)
        setup.enable(config_of(START, trigger("go", producer_name_regex="r.ght")))
        activate(setup, producer, "go")
        assert started(producer) == starts

    def test_unknown_trigger_does_not_start_the_session(self, setup):
        producer = setup.producer("ds")
        setup.enable(config_of(START, trigger("go")))
        activate(setup, producer, "other")
        assert not started(producer)

    def test_unknown_trigger_is_reported_once(self):
        errors = []
        setup = Setup(on_error=errors.append)
        producer = setup.producer("ds", name="shop")
        setup.enable(config_of(START, trigger("go")))
        for name in ("go", "other", "other", *(f"more {n}" for n in range(200))):
            activate(setup, producer, name)
        assert str(errors[0]) == "no session waits for the trigger 'other' of 'shop'"
        assert len(errors) == MAX_UNKNOWN_TRIGGERS

    def test_any_configured_trigger_starts_the_session(self, setup):
        producer = setup.producer("ds")
        setup.enable(config_of(START, trigger("go"), trigger("also")))
        activate(setup, producer, "other", "also")
        assert started(producer)

    def test_start_trigger_starts_all_sessions_that_wait_for_it(self, setup):
        producer = setup.producer("ds")
        consumers = [setup.enable(config_of(START, trigger("go"))) for _ in range(2)]
        activate(setup, producer, "go")
        assert producer.calls.count(("start", "ds")) == 2
        setup.advance(1)
        assert [consumer.disabled for consumer in consumers] == [[""], [""]]

    def test_start_trigger_is_in_the_trace_after_the_config(self, setup):
        producer = setup.producer("ds", name="p", uid=123)
        consumer = setup.enable(config_of(START, trigger("go", 7)))
        activate(setup, producer, "go")
        packets = setup.read(consumer)
        assert received(packets) == [("go", "p", 123)]
        (packet,) = [p for p in packets if p.has("trigger")]
        assert packet.trigger.stop_delay_ms == 7
        assert packet.timestamp == setup.clock.boottime_ns()
        assert kinds(packets).index("trigger") == kinds(packets).index("trace_config") + 1


class TestStopTriggers:
    def test_first_of_two_stop_triggers_ends_the_session(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(config_of(STOP, trigger("a", 100), trigger("b", 50_000)))
        assert started(producer)
        activate(setup, producer, "a", "b")
        setup.write(producer, "data")
        setup.advance(100)  # The first trigger has a stop delay of 100 ms.
        assert consumer.disabled == [""]
        packets = setup.read(consumer)
        assert [name for name, _, _ in received(packets)] == ["a", "b"]
        assert texts(packets) == ["data"]

    def test_each_received_trigger_is_read_once(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(config_of(STOP, trigger("a", 100), trigger("b", 100)))
        activate(setup, producer, "a")
        assert [name for name, _, _ in received(setup.read(consumer))] == ["a"]
        assert received(setup.read(consumer)) == []
        activate(setup, producer, "b")
        assert [name for name, _, _ in received(setup.read(consumer))] == ["b"]

    def test_session_whose_stop_trigger_is_missing_ends_without_data_at_the_timeout(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(config_of(STOP, trigger("a"), timeout=500))
        setup.write(producer, "data")
        setup.advance(500)
        assert consumer.disabled == [""]
        assert setup.read(consumer) == []

    def test_timeout_does_not_end_a_session_after_its_stop_trigger(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(config_of(STOP, trigger("a", 1000), timeout=500))
        activate(setup, producer, "a")
        setup.advance(999)
        assert not consumer.disabled
        setup.advance(1)
        assert consumer.disabled == [""]

    def test_session_ended_by_a_stop_trigger_keeps_the_newest_packets(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(config_of(STOP, trigger("a", 10), size_kb=8))
        setup.write(producer, *(f"{n} " + "x" * 900 for n in range(20)))
        activate(setup, producer, "a")
        setup.advance(10)
        seen = [int(text.split()[0]) for text in texts(setup.read(consumer))]
        assert seen == list(range(seen[0], 20))
        assert 0 < seen[0] < 19

    def test_triggers_are_not_in_the_trace_if_config_packets_are_disabled(self, setup):
        producer = setup.producer("ds")
        builtin = TraceConfig.BuiltinDataSource(disable_trace_config=True)
        consumer = setup.enable(config_of(STOP, trigger("a"), builtin_data_sources=builtin))
        activate(setup, producer, "a")
        assert received(setup.read(consumer)) == []


class TestTriggerLimits:
    def run_once(self, setup, producer):
        consumer = setup.enable(config_of(STOP, trigger("a", 8 * HOUR_MS, max_per_24_h=1)))
        activate(setup, producer, "a")
        return received(setup.read(consumer))

    def test_second_trigger_within_24_hours_is_ignored(self, setup):
        producer = setup.producer("ds")
        assert self.run_once(setup, producer)
        setup.advance(23 * HOUR_MS)
        assert not self.run_once(setup, producer)

    def test_second_trigger_after_24_hours_is_accepted(self, setup):
        producer = setup.producer("ds")
        assert self.run_once(setup, producer)
        setup.advance(24 * HOUR_MS + 1)
        assert self.run_once(setup, producer)

    @pytest.mark.parametrize(("dice", "skipped"), [(0x4000, True), (0x8000, False)])
    def test_triggers_are_skipped_with_the_configured_probability(self, dice, skipped):
        setup = Setup(random_bytes=lambda n: (dice >> 8).to_bytes(1, "big") + bytes(n - 1))
        producer = setup.producer("ds")
        setup.enable(config_of(START, trigger("go", skip_probability=0.5)))
        activate(setup, producer, "go")
        assert started(producer) != skipped

    def test_number_of_received_triggers_is_bounded(self, setup):
        producer = setup.producer("ds")
        setup.enable(config_of(STOP, trigger("a", 10_000)))
        for _ in range(MAX_RECEIVED_TRIGGERS + 5):
            producer.endpoint.activate_triggers(["a", "a"])
        assert len(setup.session().triggers.received) == MAX_RECEIVED_TRIGGERS

    def test_trigger_history_counts_the_triggers_of_24_hours_by_name(self):
        history = TriggerHistory()
        history.add("a", 10)
        history.add("b", 20)
        day = 24 * 3600 * 10**9
        assert history.count("a", 10 + day) == 1
        assert history.count("a", 11 + day) == 0
        assert history.count("b", 11 + day) == 1


class TestCloneTriggers:
    def test_session_with_clone_triggers_cannot_be_read(self, setup):
        producer = setup.producer("ds", name="p", uid=9)
        consumer = setup.enable(config_of(CLONE, trigger("a", 10)))
        setup.write(producer, "data")
        activate(setup, producer, "a")
        assert setup.read(consumer) == []
        setup.advance(30_000)
        assert consumer.disabled == [""]
        assert setup.read(consumer) == []

    @pytest.mark.parametrize("fallback", [False, True])
    def test_clone_trigger_is_reported_to_observers_after_its_delay(self, setup, fallback):
        producer = setup.producer("ds", name="p", uid=9)
        config = config_of(STOP if fallback else CLONE, trigger("a", 10), trigger("b", 10))
        if fallback:
            config.trigger_config.use_clone_snapshot_if_available = True
        consumer = setup.enable(config)
        consumer.observe(ObservableEvents.TYPE_CLONE_TRIGGER_HIT)
        activate(setup, producer, "a", "b")
        assert not consumer.events
        setup.advance(10)
        hits = [each.clone_trigger_hit for each in consumer.events]
        assert [(hit.trigger_name, hit.producer_name, hit.producer_uid) for hit in hits] == [
            ("a", "p", 9), ("b", "p", 9),
        ]  # fmt: skip
        assert hits[0].tracing_session_id == consumer.endpoint.session_id
        assert hits[0].trigger_delay_ms == 10
        assert hits[0].boot_time_ns == setup.clock.boottime_ns() - 10**7

    def test_clone_trigger_of_a_freed_session_is_not_reported(self, setup):
        producer = setup.producer("ds")
        consumer = setup.enable(config_of(CLONE, trigger("a", 10)))
        consumer.observe(ObservableEvents.TYPE_CLONE_TRIGGER_HIT)
        activate(setup, producer, "a")
        consumer.endpoint.free_buffers()
        setup.advance(100)
        assert not consumer.events


@pytest.mark.parametrize(
    ("config", "match"),
    [
        (config_of(5), "trigger_mode 5 is unknown"),
        (config_of(START, trigger("a"), trigger("a")), "'a' is listed twice"),
        (config_of(START, duration_ms=1), "duration_ms can't be combined"),
        (config_of(START, timeout=0), "between 1 and"),
        (config_of(STOP, timeout=7 * 24 * HOUR_MS + 1), "between 1 and"),
        (config_of(STOP, write_into_file=True), "stop or clone"),
        (config_of(CLONE, write_into_file=True), "stop or clone"),
        (
            TraceConfig(
                trigger_config=Triggers(trigger_mode=START, use_clone_snapshot_if_available=True)
            ),
            "needs trigger_mode STOP",
        ),
    ],
)
def test_invalid_trigger_config_is_refused(config, match):
    with pytest.raises(ConfigError, match=match):
        check_config(config, has_fd=True)
