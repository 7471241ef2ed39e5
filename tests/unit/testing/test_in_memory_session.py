from __future__ import annotations

import pytest

from stretto.base.errors import DecodeError, SessionError
from stretto.testing.decoded_packets import decode_packets, split_packets
from stretto.testing.in_memory_session import InMemorySession
from stretto.testing.mock_producer import MockProducer
from tests.support.service_setup import event, events, make_config, texts


def test_session_returns_written_packets_as_decoded_messages():
    with InMemorySession(make_config("a", "b")) as session:
        session.writer("a").write(event("first"))
        session.writer("b").write(event("second"))
    assert sorted(texts(session.packets("for_testing"))) == ["first", "second"]
    assert len(session.packets()) > 10
    assert decode_packets(session.trace) == session.packets()
    assert {"tracing_started", "tracing_disabled"} <= set(events(session.packets()))


def test_clock_advances_only_on_request():
    session = InMemorySession(make_config("a", duration_ms=1000))
    session.start()
    session.writer("a").write(event("x"))
    session.task_runner.advance(999)
    assert not session.consumer.disabled
    session.task_runner.advance(1)
    assert session.consumer.disabled == [""]
    session.stop()
    assert texts(session.packets()) == ["x"]


def test_another_producer_can_join_the_session():
    with InMemorySession(make_config("a")) as session:
        late = MockProducer(session.service, "late")
        late.register("a")
        session.task_runner.run_until_idle()
        late.writer("a").write(event("late"))
        assert session.flush()
    assert texts(session.packets()) == ["late"]


def test_data_source_listed_twice_is_registered_once():
    session = InMemorySession(make_config("a", "a"))
    session.start()
    assert session.producer.calls.count(("start", "a")) == 2
    assert len(session.service.data_sources) == 1


def test_refused_config_is_an_error():
    with pytest.raises(SessionError, match="Invalid buffer sizes"):
        InMemorySession(make_config(size_kb=0)).start()


def test_malformed_trace_is_an_error():
    assert list(split_packets(b"")) == []
    assert list(split_packets(b"\x0a\x00\x0a\x01x")) == [b"", b"x"]
    for bad, message in (
        (b"\x0a\x02x", "offset 0"),
        (b"\x0a\x80", "size"),
        (b"\x0a\x00no", "at offset 2"),
    ):
        with pytest.raises(DecodeError, match=message):
            list(split_packets(bad))


def test_public_names_are_exported():
    import stretto.testing

    for name in stretto.testing.__all__:
        assert getattr(stretto.testing, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Missing'"):
        _ = stretto.testing.Missing
