"""The work for a request grows linearly with its size.

Each case runs with one size and with four times this size, and counts operations: linear work
takes about four times as many operations, quadratic work sixteen times.
"""

from __future__ import annotations

import pytest

from stretto.base.errors import SessionError
from stretto.protos.config import TraceConfig
from stretto.service import limits
from stretto.service.session import data_source as data_source_module
from stretto.service.session.config_validation import check_against_sessions, check_config
from stretto.service.session.triggers import TriggerHistory
from tests.support.operations import CountedName, comparisons, operations
from tests.support.service_setup import Setup, data_source, make_config

FEW, MANY = 60, 240
LINEAR = 1.5 * MANY / FEW

Trigger = TraceConfig.TriggerConfig.Trigger
Semaphore = TraceConfig.SessionSemaphore


def trigger_config(names, **fields):
    waits = TraceConfig.TriggerConfig(
        trigger_mode=2, triggers=[Trigger(name=name, **fields) for name in names],
        trigger_timeout_ms=1000,
    )  # fmt: skip
    return make_config("ds", trigger_config=waits)


def names_of(count):
    return [f"source {number}" for number in range(count)]


def activate_unknown_triggers(count):
    setup = Setup()
    producer = setup.producer("ds")
    setup.enable(trigger_config(["known"]))
    for number in range(count):
        setup.service.trigger_history.add(f"old {number}", 0)
    names = [f"unknown {number}" for number in range(count)]
    return lambda: producer.endpoint.activate_triggers(names)


def activate_known_triggers(count):
    setup = Setup()
    producer = setup.producer("ds")
    names = names_of(count)
    setup.enable(trigger_config(names, producer_name_regex="mock.*", max_per_24_h=5))
    return lambda: producer.endpoint.activate_triggers(names)


def check_triggers(count):
    config = trigger_config(names_of(count))
    return lambda: check_config(config, has_fd=False)


def register_by_one_producer(count):
    setup = Setup()
    producer = setup.producer()
    return lambda: [producer.register(name) for name in names_of(count)]


def register_by_many_producers(count):
    setup = Setup()
    setup.enable(make_config("wanted"))
    producers = [setup.producer() for _ in range(count)]
    return lambda: [producer.register("other") for producer in producers]


def register_sources_of_a_long_config(count):
    setup = Setup()
    setup.enable(make_config(*names_of(count)))
    producer = setup.producer()
    return lambda: [producer.register(name) for name in names_of(count)]


def set_up_a_long_config(count):
    setup = Setup()
    setup.producer(*names_of(count))
    return lambda: setup.enable(make_config(*names_of(count)))


def change_filters_of_a_long_config(count):
    setup = Setup()
    setup.producer(*names_of(count))
    consumer = setup.enable(make_config(*names_of(count)))
    config = make_config()
    for name in names_of(count):
        entry = TraceConfig.DataSource(producer_name_filter=["x"], config=data_source(name).config)
        config.data_sources.append(entry)
    return lambda: consumer.endpoint.change_trace_config(config.encode())


def update_data_sources(count):
    setup = Setup()
    producer = setup.producer()
    for name in names_of(count):
        producer.register(name, ident=1)
    descriptors = [source.descriptor for source in setup.service.data_sources]
    update = producer.endpoint.update_encoded_data_source
    return lambda: [update(descriptor) for descriptor in descriptors]


def unregister_data_sources(count):
    setup = Setup()
    producer = setup.producer(*names_of(count))
    setup.enable(make_config(*names_of(count)))
    return lambda: [producer.endpoint.unregister_data_source(name) for name in names_of(count)]


def disconnect_with_data_sources(count):
    setup = Setup()
    producer = setup.producer(*names_of(count))
    setup.enable(make_config(*names_of(count)))
    return producer.disconnect


def confirm_starts(count):
    setup = Setup()
    producer = setup.producer()
    for name in names_of(count):
        producer.register(name, ack_start=True)
    setup.enable(make_config(*names_of(count)))
    return lambda: [producer.started(name) for name in names_of(count)]


def confirm_stops(count):
    setup = Setup()
    producer = setup.producer()
    for name in names_of(count):
        producer.register(name, ack_stop=True)
    consumer = setup.enable(make_config(*names_of(count)))
    consumer.endpoint.disable_tracing()
    return lambda: [producer.stopped(name) for name in names_of(count)]


def acknowledge_flushes_one_by_one(count):
    """Return a function that acknowledges all flushes of one producer.

    Another producer never answers, so the flushes stay pending.
    """
    setup = Setup()
    silent = setup.producer("ds", answers_flushes=False)
    producer = setup.producer("ds", answers_flushes=False)
    consumer = setup.enable(make_config("ds"))
    for _ in range(count):
        consumer.flush()
    setup.run()
    ids = [request_id for request_id, _, _ in producer.flushes]
    assert len(silent.flushes) == len(ids) == count
    return lambda: [producer.endpoint.notify_flush_complete(ident) for ident in ids]


def query_state(count):
    setup = Setup()
    setup.producer(*names_of(count))
    return setup.consumer().endpoint.encoded_service_state


def semaphores(count):
    names = names_of(count)
    config = make_config()
    config.session_semaphores = [
        Semaphore(name=name, max_other_session_count=9) for name in names
    ]  # fmt: skip
    setup = Setup()
    setup.enable(config)
    sessions = setup.service.sessions.values()
    return lambda: check_against_sessions(config, 1, sessions, {}, 0)


CASES = [
    activate_unknown_triggers, activate_known_triggers, check_triggers, register_by_one_producer,
    register_by_many_producers, register_sources_of_a_long_config, set_up_a_long_config,
    change_filters_of_a_long_config, update_data_sources, unregister_data_sources,
    disconnect_with_data_sources, confirm_starts, confirm_stops, acknowledge_flushes_one_by_one,
    query_state, semaphores,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_number_of_operations_is_linear_in_the_input_size(case, monkeypatch):
    monkeypatch.setattr(limits, "MAX_SLOW_DATA_SOURCES", 0)
    few, many = operations(case(FEW)), operations(case(MANY))
    assert many <= LINEAR * few, f"{few} operations for {FEW}, {many} for {MANY}"


def test_one_answer_to_many_flushes_scrapes_once(setup, monkeypatch):
    producer = setup.producer("ds", answers_flushes=False)
    consumer = setup.enable(make_config("ds"))
    for _ in range(50):
        consumer.flush()
    setup.run()
    scrapes = []
    monkeypatch.setattr(type(producer.endpoint), "scrape", lambda *_: scrapes.append(1))
    producer.endpoint.notify_flush_complete(producer.flushes[-1][0])
    setup.run()
    assert consumer.flushes == [True] * 50
    assert len(scrapes) == 1


def test_config_is_copied_once_for_many_data_sources_of_the_same_name(setup, monkeypatch):
    made = []
    make = data_source_module.config_for_producer
    monkeypatch.setattr(
        data_source_module,
        "config_for_producer",
        lambda *args, **more: made.append(1) or make(*args, **more),
    )
    producer = setup.producer(*["ds"] * MANY)
    setup.enable(make_config("ds"))
    assert producer.calls.count(("start", "ds")) == MANY
    assert len(made) == 1


class TestStringComparisonsInC:
    """The tests count string comparisons, because loops in C (`name in names`) run no bytecode."""

    def test_duplicate_trigger_names_are_found_in_linear_time(self):
        names = [CountedName(f"name {number}") for number in range(MANY)]
        config = trigger_config(names)
        for trigger, name in zip(config.trigger_config.triggers, names, strict=True):
            vars(trigger)["name"] = name
        assert comparisons(lambda: check_config(config, has_fd=False)) <= 2 * MANY

    def test_trigger_history_finds_a_name_without_comparing_all_names(self):
        history = TriggerHistory()
        for number in range(MANY):
            history.add(CountedName(f"name {number}"), 0)
        unknown = [CountedName(f"unknown {number}") for number in range(MANY)]
        assert comparisons(lambda: [history.count(name, 0) for name in unknown]) <= 2 * MANY

    def test_producer_name_is_found_in_a_long_filter_without_comparing_all_names(self, setup):
        config = make_config("ds")
        config.data_sources[0].producer_name_filter = [f"name {number}" for number in range(MANY)]
        setup.enable(config)
        producer = setup.producer(name=CountedName("none of them"))
        assert comparisons(lambda: producer.register("ds")) <= 2


class TestTriggerHistory:
    def test_history_counts_triggers_of_the_last_24_hours(self):
        history = TriggerHistory()
        for hour in (0, 1, 1, 23):
            history.add("a", hour * 3600 * 10**9)
        history.add("b", 23 * 3600 * 10**9)
        at = 25 * 3600 * 10**9
        assert [history.count(name, at) for name in "abc"] == [3, 1, 0]
        assert [history.count(name, at + 1) for name in "abc"] == [1, 1, 0]

    def test_number_of_triggers_in_the_history_is_limited(self, monkeypatch):
        monkeypatch.setattr(limits, "MAX_TRIGGER_HISTORY", 3)
        history = TriggerHistory()
        for name in ("a", "b", "c", "a"):
            history.add(name, 0)
        assert [history.count(name, 0) for name in "abc"] == [1, 1, 1]
        assert len(history._counts) == len(history._entries) == 3


def test_semaphore_counts_all_sessions_that_hold_its_name(setup):
    config = make_config()
    config.session_semaphores = [Semaphore(name="one", max_other_session_count=1)]
    setup.enable(config)
    setup.enable(config)
    with pytest.raises(SessionError, match="2 other sessions hold it"):
        check_against_sessions(config, 1, setup.service.sessions.values(), {}, 0)
