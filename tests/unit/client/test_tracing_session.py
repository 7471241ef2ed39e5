"""TracingSession: the order of its method calls, and errors of invalid configs."""

from __future__ import annotations

import gc
import os

import pytest

import stretto
from stretto.base.errors import ConfigError, SessionError, StrettoError
from stretto.protos.config import DataSourceConfig, TraceConfig
from stretto.service.endpoints.consumer_endpoint import ConsumerEndpoint
from tests.support.recorded_events import config, events_of

CATEGORY = stretto.Category("test.session")


def names(trace):
    return [event.name for event in events_of(trace)]


def test_session_methods_can_be_called_in_the_documented_order():
    session = stretto.TracingSession(config())
    session.setup()
    assert not CATEGORY.enabled
    session.start()
    CATEGORY.instant("x")
    assert session.flush()
    session.stop()
    assert not CATEGORY.enabled
    assert names(session.read()) == ["x"]
    session.close()


def test_encoded_config_is_accepted():
    with stretto.TracingSession(config().encode()) as session:
        CATEGORY.instant("x")
        session.stop()
        assert names(session.read()) == ["x"]


def test_stop_read_and_close_can_be_repeated():
    session = stretto.TracingSession(config())
    session.start()
    CATEGORY.instant("x")
    session.stop()
    session.stop()
    assert names(session.read()) == ["x"]
    assert names(session.read()) == []
    session.close()
    session.close()


def test_running_session_can_be_read():
    with stretto.TracingSession(config()) as session:
        CATEGORY.instant("first")
        session.flush()
        first = session.read()
        CATEGORY.instant("second")
        session.stop()
        assert names(first + session.read()) == ["first", "second"]


def test_failure_to_send_a_request_is_an_error_of_the_call(monkeypatch):
    def fail(*_):
        raise SessionError("not sent")

    with stretto.TracingSession(config()) as session:
        monkeypatch.setattr(ConsumerEndpoint, "flush", fail)
        with pytest.raises(SessionError, match="not sent"):
            session.flush()
        with pytest.raises(SessionError, match="not sent"):
            session.stop()
        assert CATEGORY.enabled
        monkeypatch.undo()
        session.stop()


def test_close_ends_a_running_session():
    session = stretto.TracingSession(config())
    session.start()
    assert CATEGORY.enabled
    session.close()
    assert not CATEGORY.enabled


def test_deleted_session_ends():
    session = stretto.TracingSession(config())
    session.start()
    assert CATEGORY.enabled
    del session
    gc.collect()
    # The second session starts after the first session has ended.
    with stretto.TracingSession(config()) as other:
        other.stop()
        assert not CATEGORY.enabled


@pytest.mark.parametrize("call", ["stop", "flush", "read", "stats", "wait"])
def test_session_methods_called_out_of_order_are_errors(call):
    session = stretto.TracingSession(config())
    with pytest.raises(SessionError, match=r"call start\(\) first"):
        getattr(session, call)()
    session.start()
    session.close()
    with pytest.raises(SessionError, match=r"call start\(\) first"):
        getattr(session, call)()


def test_second_start_or_setup_is_an_error():
    with stretto.TracingSession(config()) as session:
        with pytest.raises(SessionError):
            session.setup()
        with pytest.raises(SessionError):
            session.start()
        CATEGORY.instant("goes on")
        session.stop()
        assert names(session.read()) == ["goes on"]


def test_session_ends_after_its_duration():
    made = config()
    made.duration_ms = 50
    with stretto.TracingSession(made) as session:
        CATEGORY.instant("x")
        session.wait(10)
        assert not CATEGORY.enabled
        session.stop()
        assert names(session.read()) == ["x"]


def test_wait_for_the_end_of_a_session_times_out():
    with stretto.TracingSession(config()) as session:
        with pytest.raises(SessionError, match="did not end the session within 0"):
            session.wait(0)
        with pytest.raises(SessionError, match=r"within 0\.15 s"):
            session.wait(0.15)


def test_trace_is_written_into_a_file(tmp_path):
    made = config()
    made.write_into_file = True
    fd = os.open(tmp_path / "t", os.O_CREAT | os.O_RDWR, 0o600)
    session = stretto.TracingSession(made)
    session.setup(fd)
    session.start()
    CATEGORY.instant("x")
    session.stop()
    session.close()
    os.close(fd)
    assert names((tmp_path / "t").read_bytes()) == ["x"]


def test_several_sessions_start_and_end_in_any_order():
    one, two, three = (stretto.TracingSession(config()) for _ in range(3))
    one.start()
    CATEGORY.instant("a")
    two.start()
    CATEGORY.instant("b")
    one.stop()
    three.start()
    CATEGORY.instant("c")
    two.stop()
    three.stop()
    found = [names(session.read()) for session in (one, two, three)]
    assert found == [["a", "b"], ["b", "c"], ["c"]]
    for session in one, two, three:
        session.close()


@pytest.mark.parametrize("wrong", [None, 5, {"buffers": []}, DataSourceConfig()])
def test_config_of_a_wrong_type_is_refused(wrong):
    with pytest.raises(ConfigError, match="must be a TraceConfig, bytes or text, not "):
        stretto.TracingSession(wrong)


def test_malformed_encoded_config_is_refused():
    with pytest.raises(ConfigError, match="an encoded TraceConfig"):
        stretto.TracingSession(b"\xff\xff\xff")


def test_config_in_text_form_is_accepted():
    text = """
        buffers { size_kb: 64 }
        data_sources { config { name: "track_event" } }
    """
    with stretto.TracingSession(text) as session:
        CATEGORY.instant("heard")
        session.stop()
        assert names(session.read()) == ["heard"]


@pytest.mark.parametrize("wrong", ["text", "buffers { size: 5 }", "buffers {"])
def test_malformed_config_text_is_refused(wrong):
    with pytest.raises(ConfigError, match=r"a TraceConfig in text form: .*1:"):
        stretto.TracingSession(wrong)


def test_unknown_backend_is_refused():
    session = stretto.TracingSession(config(), backend="cloud")
    with pytest.raises(StrettoError, match=r"no backend 'cloud'; use one of: .*in_process"):
        session.start()
    session.close()


def test_unknown_and_invalid_config_fields_are_refused():
    with pytest.raises(StrettoError, match="did you mean 'duration_ms'"):
        TraceConfig(duration_m=5)
    with pytest.raises(StrettoError):
        TraceConfig(duration_ms="long")
    with pytest.raises(StrettoError):
        TraceConfig(duration_ms=-1)


def refused(**changes):
    made = config()
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def out_of_range():
    made = config()
    made.data_sources[0].config.target_buffer = 7
    return made


@pytest.mark.parametrize(
    "made",
    [
        refused(buffers=[]),
        refused(buffers=[TraceConfig.BufferConfig(size_kb=0)]),
        out_of_range(),
        refused(duration_ms=2**31),
    ],
    ids=["no buffer", "buffer of 0", "target_buffer", "duration"],
)
def test_config_refused_by_the_service_is_an_error(made):
    session = stretto.TracingSession(made)
    with pytest.raises(SessionError) as caught:
        session.start()
    assert len(str(caught.value)) > 20
    assert not CATEGORY.enabled
    session.close()
    with stretto.TracingSession(config()) as other:
        CATEGORY.instant("unharmed")
        other.stop()
        assert names(other.read()) == ["unharmed"]


def test_exception_in_the_block_propagates_and_ends_the_session():
    with pytest.raises(KeyError), stretto.TracingSession(config()):
        raise KeyError
    assert not CATEGORY.enabled


def test_statistics_contain_the_buffers_of_the_session():
    with stretto.TracingSession(config()) as session:
        CATEGORY.instant("x")
        session.flush()
        stats = session.stats()
        assert len(stats.buffer_stats) == 1
        assert stats.buffer_stats[0].bytes_written > 0
