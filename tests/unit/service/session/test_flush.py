from __future__ import annotations

import pytest

from stretto.service import limits
from tests.support.service_setup import event, events, make_config, texts

FLUSH_BEFORE_WRITE = 3


def test_flush_request_reaches_the_producer_with_its_flags(setup):
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds"))
    producer.writer("ds").write(event("payload"))
    consumer.flush(flags=0x34)
    setup.run()
    assert consumer.flushes == [True]
    (flush,) = producer.flushes
    assert flush[1:] == ([producer.instances["ds"]], 0x34)
    assert texts(setup.read(consumer)) == ["payload"]
    setup.advance(10_000)
    assert consumer.flushes == [True]


def test_answer_to_a_flush_also_completes_earlier_flushes(setup):
    producer = setup.producer("ds", answers_flushes=False)
    consumer = setup.enable(make_config("ds"))
    for timeout in (1000, 1000, 1000, 10):
        consumer.flush(timeout)
    setup.run()
    ids = [request_id for request_id, _, _ in producer.flushes]
    assert ids == sorted(set(ids))
    producer.answer_flush(ids[2])
    setup.run()
    assert consumer.flushes == [True, True, True]
    setup.advance(10)
    assert consumer.flushes == [True, True, True, False]
    producer.answer_flush(ids[3])
    setup.run()
    assert len(consumer.flushes) == 4


def test_flush_succeeds_only_after_all_producers_have_answered(setup):
    first, second = setup.producer("ds"), setup.producer("ds", answers_flushes=False)
    consumer = setup.enable(make_config("ds"))
    consumer.flush()
    setup.run()
    assert not consumer.flushes
    # Neither a later producer nor an answer to another flush completes this flush.
    setup.producer("ds").answer_flush(99)
    first.answer_flush(99)
    setup.run()
    assert not consumer.flushes
    second.answer_flush(second.flushes[0][0])
    setup.run()
    assert consumer.flushes == [True]


def test_commit_with_flush_id_completes_the_flush(setup):
    producer = setup.producer("ds", answers_flushes=False)
    consumer = setup.enable(make_config("ds"))
    consumer.flush()
    setup.run()
    producer.endpoint.on_commit(0)
    setup.run()
    assert not consumer.flushes
    producer.endpoint.on_commit(producer.flushes[0][0])
    setup.run()
    assert consumer.flushes == [True]


def test_flush_does_not_wait_for_a_disconnected_producer(setup):
    producer = setup.producer("ds", answers_flushes=False)
    consumer = setup.enable(make_config("ds"))
    consumer.flush()
    setup.run()
    producer.disconnect()
    setup.run()
    assert consumer.flushes == [True]


def test_flush_fails_after_the_default_or_configured_timeout(setup):
    setup.producer("ds", answers_flushes=False)
    default = setup.enable(make_config("ds"))
    configured = setup.enable(make_config("ds", flush_timeout_ms=70))
    default.flush()
    configured.flush()
    setup.advance(70)
    assert (default.flushes, configured.flushes) == ([], [False])
    setup.advance(5000 - 71)
    assert default.flushes == []
    setup.advance(1)
    assert default.flushes == [False]


def test_flush_without_producers_succeeds(setup):
    consumer = setup.enable(make_config())
    consumer.flush()
    setup.run()
    assert consumer.flushes == [True]


def test_flush_of_a_session_that_is_not_started_fails(setup):
    consumer = setup.enable(make_config(deferred_start=True))
    consumer.flush()
    setup.run()
    consumer.endpoint.disable_tracing()
    consumer.flush()
    setup.run()
    assert consumer.flushes == [False, False]
    flushes = setup.session().flushes
    assert (flushes.requested, flushes.failed) == (0, 0)


def test_data_sources_with_no_flush_are_not_flushed(setup):
    producer = setup.producer("flushed")
    producer.register("silent", no_flush=True)
    alone = setup.producer()
    alone.register("silent", no_flush=True)
    consumer = setup.enable(make_config("flushed", "silent"))
    consumer.flush()
    setup.run()
    assert [ids for _, ids, _ in producer.flushes] == [[producer.instances["flushed"]]]
    assert not alone.flushes
    assert consumer.flushes == [True]


def test_producers_are_flushed_periodically_until_the_session_ends(setup):
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds", flush_period_ms=100))
    setup.clock.advance_ms(30)
    setup.advance(370)
    assert [flags for _, _, flags in producer.flushes] == [0x11] * 4
    assert setup.clock.walltime_ns() // 10**6 % 100 == 0
    consumer.endpoint.disable_tracing()
    setup.advance(500)
    assert len(producer.flushes) == 4


@pytest.mark.parametrize("into_file", [False, True])
def test_periodic_flushes_end_when_the_data_sources_are_stopped(setup, tmp_path, into_file):
    """A flush that is due while the data sources stop isn't one that has failed."""
    producer = setup.producer()
    producer.register("slow", ack_stop=True)
    config = make_config("slow", flush_period_ms=100)
    if into_file:
        config.write_into_file = True
        config.output_path = str(tmp_path / "trace")
        config.file_write_period_ms = 100
        config.write_flush_mode = FLUSH_BEFORE_WRITE
    consumer = setup.enable(config)
    consumer.endpoint.disable_tracing()
    setup.advance(500)
    flushes = setup.session().flushes
    assert (flushes.requested, flushes.failed) == (0, 0)
    producer.stopped("slow")
    setup.run()
    assert consumer.disabled == [""]


def test_pending_flushes_are_bounded(setup, monkeypatch):
    monkeypatch.setattr(limits, "MAX_PENDING_FLUSHES", 3)
    setup.producer("ds", answers_flushes=False)
    consumer = setup.enable(make_config("ds"))
    for _ in range(4):
        consumer.flush()
    setup.run()
    assert consumer.flushes == [False]


def test_only_the_last_64_flush_events_are_kept(setup):
    setup.producer("ds")
    consumer = setup.enable(make_config("ds"))
    setup.read(consumer)
    for _ in range(100):
        consumer.flush()
        setup.run()
        setup.advance(1)
    names = events(setup.read(consumer))
    assert names[:-1] == ["flush_started", "all_data_sources_flushed"] * 64


def test_requested_succeeded_and_failed_flushes_are_counted(setup):
    producer = setup.producer("ds", answers_flushes=False)
    consumer = setup.enable(make_config("ds"))
    consumer.flush(10)
    consumer.flush(10)
    setup.run()
    producer.answer_flush(producer.flushes[0][0])
    setup.advance(10)
    flushes = setup.session().flushes
    assert (flushes.requested, flushes.succeeded, flushes.failed) == (2, 1, 1)


@pytest.mark.parametrize("answers", [True, False])
def test_flush_scrapes_unfinished_chunks_once(setup, answers):
    """Packets in a chunk that the writer has not committed are read, and only once."""
    producer = setup.producer("ds", answers_flushes=False)
    consumer = setup.enable(make_config("ds"))
    writer = producer.writer("ds")
    for text in ("one", "two"):
        writer.write(event(text))
        consumer.flush(10)
        setup.run()
        if answers:
            producer.endpoint.notify_flush_complete(producer.flushes[-1][0])
        setup.advance(10)
        assert texts(setup.read(consumer)) == [text]
    writer.flush()
    setup.run()
    assert texts(setup.read(consumer)) == []
