"""Startup tracing sessions, with a fake service and a fake clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

import stretto
from stretto import _native
from stretto.client.producer_connection import ProducerConnection
from stretto.client.startup_config import requested_fields
from stretto.client.startup_tracing import StartupTracingSession
from stretto.client.track_event.source import TrackEventSource
from stretto.protos.config import DataSourceConfig, TrackEventConfig
from stretto.testing.fake_clock import FakeClock

NAME = "com.example.startup"
OTHER = "com.example.other"


class Early(stretto.DataSource):
    name = NAME
    log: ClassVar[list[str]] = []

    def on_setup(self, config: DataSourceConfig) -> None:
        self.log.append("setup")

    def on_start(self) -> None:
        self.log.append("start")

    def on_stop(self) -> None:
        self.log.append("stop")


class Other(stretto.DataSource):
    name = OTHER


class FakeEndpoint:
    """A fake service endpoint that records the calls of the producer."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_args: self.calls.append(name)


class FakeArbiter:
    """A fake arbiter that records reservations of target buffers."""

    def __init__(self) -> None:
        self.bound: dict[int, int] = {}
        self.open: list[int] = []

    def bind_startup_target_buffer(self, reservation: int, target_buffer: int) -> None:
        assert reservation not in self.bound
        self.bound[reservation] = target_buffer

    def open_buffer(self, target: int) -> bool:
        self.open.append(target)
        return True

    def close_buffer(self, target: int) -> None:
        self.open.remove(target)

    def flush(self) -> None: ...
    def disable(self) -> None: ...


def config(name: str = NAME, **fields: Any) -> DataSourceConfig:
    return DataSourceConfig(name=name, **fields)


class Program:
    """A program with a fake clock; its producer connection can be made later."""

    def __init__(self, *, connected: bool = True) -> None:
        self.clock = FakeClock()
        self.producer = ProducerConnection([Early, Other])
        self.endpoint = FakeEndpoint()
        self.arbiter: Any = FakeArbiter()
        self.ends: list[str] = []
        if connected:
            self.connect()

    def connect(self) -> None:
        self.producer.attach(self.endpoint)  # type: ignore[arg-type]
        self.producer.on_connect()
        self.producer.on_tracing_setup(self.arbiter)

    def start(self, *configs: DataSourceConfig, timeout_ms: float = 1000) -> StartupTracingSession:
        session = StartupTracingSession(
            lambda: self.ends.append("adopted"), lambda: self.ends.append("aborted")
        )
        self.needs_memory = self.producer.setup_startup_tracing(
            session, configs or [config()], timeout_ms, self.clock.boottime_ns
        )
        return session

    def pass_time(self, ms: float) -> float | None:
        self.clock.advance_ms(ms)
        assert self.producer.startup is not None
        return self.producer.startup.expire()


@pytest.fixture
def program() -> Iterator[Program]:
    Early.log.clear()
    program = Program()
    yield program
    program.producer.on_disconnect()
    assert not Early.instances()
    assert program.arbiter.open == []


def test_service_adopts_a_matching_startup_instance(program: Program) -> None:
    session = program.start()
    (instance,) = Early.instances()
    assert not program.needs_memory
    assert Early.log == ["setup", "start"]
    assert (instance.instance_id, instance.target_buffer) == (0, 1 << 16)

    program.producer.setup_data_source(7, config(target_buffer=3, tracing_session_id=9))
    assert (session.state, program.ends) == ("adopted", ["adopted"])
    assert program.arbiter.bound == {1: 3}
    assert instance.instance_id == 7
    assert instance.config.tracing_session_id == 9

    program.producer.start_data_source(7, config(target_buffer=3))
    # The data source was started before the adoption, and only once.
    assert Early.log == ["setup", "start"]
    assert program.endpoint.calls[-1] == "notify_data_source_started"
    assert program.pass_time(2000) is None
    assert Early.instances() == (instance,)
    program.producer.stop_data_source(7)
    assert Early.log == ["setup", "start", "stop"]
    session.abort()  # An adopted session can't be aborted.
    assert program.ends == ["adopted"]


def test_second_session_of_the_service_gets_its_own_data_source_instance(program: Program) -> None:
    program.start()
    program.producer.setup_data_source(7, config(target_buffer=3))
    program.producer.setup_data_source(8, config(target_buffer=4))
    program.producer.start_data_source(8, config(target_buffer=4))
    assert len(Early.instances()) == 2
    assert program.arbiter.bound == {1: 3}


def test_session_is_aborted_at_its_timeout(program: Program) -> None:
    session = program.start(timeout_ms=1000)
    assert program.pass_time(400) == 600
    assert session.state == "recording"
    assert program.pass_time(600) is None
    assert (session.state, program.ends) == ("aborted", ["aborted"])
    assert Early.log == ["setup", "start", "stop"]
    assert program.arbiter.bound == {1: 0}
    # The aborted instance can't be adopted, so a new instance is created.
    program.producer.setup_data_source(7, config(target_buffer=3))
    assert Early.log[-1] == "setup"
    assert program.arbiter.bound == {1: 0}


def test_each_session_has_its_own_timeout(program: Program) -> None:
    first = program.start(timeout_ms=500)
    second = program.start(config(legacy_config="x"), timeout_ms=2000)
    assert program.pass_time(500) == 1500
    assert (first.state, second.state) == ("aborted", "recording")
    assert program.pass_time(1500) is None
    assert program.arbiter.bound == {1: 0, 2: 0}


def test_instance_with_another_config_is_not_adopted(program: Program) -> None:
    session = program.start(config(legacy_config="mine"))
    program.producer.setup_data_source(7, config(target_buffer=3, legacy_config="theirs"))
    assert session.state == "recording"
    program.producer.setup_data_source(8, config(target_buffer=4, legacy_config="mine"))
    assert session.state == "adopted"
    assert program.arbiter.bound == {1: 4}


def test_session_is_adopted_when_all_its_instances_are_adopted(program: Program) -> None:
    session = program.start(config(), config(OTHER), config("nobody's"))
    assert session.num_data_sources_started == 2
    program.producer.setup_data_source(7, config(OTHER, target_buffer=3))
    assert session.state == "recording"
    program.producer.setup_data_source(8, config(target_buffer=3))
    assert session.state == "adopted"
    assert program.arbiter.bound == {2: 3, 1: 3}


def test_adopted_instances_continue_when_other_instances_are_aborted(program: Program) -> None:
    session = program.start(config(), config(OTHER))
    program.producer.setup_data_source(7, config(target_buffer=3))
    session.abort()
    assert (session.state, program.ends) == ("aborted", ["aborted"])
    assert len(Early.instances()) == 1
    assert Other.instances() == ()
    assert program.arbiter.bound == {1: 3, 2: 0}


def test_disconnection_aborts_the_startup_session(program: Program) -> None:
    session = program.start()
    program.producer.on_disconnect()
    assert session.state == "aborted"
    assert Early.log == ["setup", "start", "stop"]


def test_session_that_begins_during_a_disconnection_waits_for_the_next_service(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.producer.setup_data_source(7, config(target_buffer=3))
    program.producer.start_data_source(7, config(target_buffer=3))
    sessions: list[StartupTracingSession] = []

    def begin_once(_source: Early) -> None:
        if not sessions:
            sessions.append(program.start())

    # While the data source stops, the disconnection is half done; another thread may act then.
    monkeypatch.setattr(Early, "on_stop", begin_once)
    program.producer.on_disconnect()
    assert program.needs_memory
    assert (sessions[0].state, program.ends) == ("recording", [])
    sessions[0].abort()


def test_disconnection_while_a_session_begins_aborts_the_session(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Early, "on_start", lambda _source: program.producer.on_disconnect())
    session = program.start()
    assert (session.state, program.ends) == ("aborted", ["aborted"])


def test_session_without_known_data_sources_is_aborted(program: Program) -> None:
    session = program.start(config("nobody's"))
    assert (session.state, session.num_data_sources_started) == ("aborted", 0)


def test_child_of_a_fork_has_no_startup_session(program: Program) -> None:
    session = program.start()
    program.producer.abandon()
    assert session.state == "aborted"
    assert program.ends == []  # Only the parent's callbacks are called.
    assert Early.instances() == ()
    program.arbiter.open.clear()


def test_startup_memory_is_kept_until_all_sessions_have_ended() -> None:
    program = Program(connected=False)
    session = program.start()
    assert program.needs_memory
    second = program.start(config(OTHER))
    assert not program.needs_memory  # The first session has created the startup memory.
    startup = program.producer.startup
    assert startup is not None
    assert startup.memory is not None
    (instance,) = Early.instances()
    assert instance.arbiter is startup.memory.arbiter
    assert isinstance(instance.arbiter, _native.Arbiter)
    session.abort()
    assert startup.memory is not None
    second.abort()
    assert startup.memory is None
    assert Early.instances() == ()


def test_startup_memory_refused_by_the_service_aborts_the_session() -> None:
    program = Program(connected=False)
    session = program.start()
    startup = program.producer.startup
    assert startup is not None
    assert startup.memory is not None
    startup.memory.on_refused(startup.memory.arbiter)
    assert session.state == "aborted"
    assert startup.memory is None


def test_end_of_a_connection_keeps_sessions_with_their_own_memory() -> None:
    program = Program()
    program.producer.on_disconnect()
    session = program.start()
    program.connect()
    program.producer.setup_data_source(7, config(target_buffer=3))
    # The session's data is in the startup memory, not in the connection's memory.
    assert session.state == "recording"
    program.producer.on_disconnect()
    assert session.state == "recording"
    session.abort()


def test_exception_of_a_callback_is_reported(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[BaseException | None] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: seen.append(unraisable.exc_value))
    session = StartupTracingSession(None, lambda: 1 // 0)
    program.producer.setup_startup_tracing(session, [config()], 10, program.clock.boottime_ns)
    session.abort()
    assert [type(error) for error in seen] == [ZeroDivisionError]


class TestConfigComparison:
    def test_fields_set_by_the_service_are_not_compared(self) -> None:
        theirs = config(
            target_buffer=3,
            tracing_session_id=4,
            session_initiator=1,
            trace_duration_ms=5,
            stop_timeout_ms=6,
            enable_extra_guardrails=True,
        )
        assert Early.can_adopt_startup_session(config(target_buffer=1), theirs)

    def test_explicit_default_values_equal_absent_fields(self) -> None:
        spelled = config(legacy_config="", track_event_config=TrackEventConfig())
        assert requested_fields(spelled) == requested_fields(config())

    @pytest.mark.parametrize(
        "fields", [{"legacy_config": "x"}, {"priority_boost": {}}, {"buffer_exhausted_policy": 1}]
    )
    def test_startup_session_is_not_adopted_if_a_field_of_the_configs_differs(
        self, fields: dict[str, Any]
    ) -> None:
        if "priority_boost" in fields:
            theirs = config(track_event_config=TrackEventConfig(filter_debug_annotations=True))
        else:
            theirs = config(**fields)
        assert not Early.can_adopt_startup_session(config(), theirs)

    def test_startup_session_is_not_adopted_if_an_unknown_field_differs(self) -> None:
        # The field has the tag 1013, which is in no schema, and the value 1.
        theirs = DataSourceConfig.decode(config().encode() + b"\xa8\x3f\x01")
        assert not Early.can_adopt_startup_session(config(), theirs)

    @pytest.mark.parametrize(
        ("theirs", "fits"),
        [
            (TrackEventConfig(enabled_categories=["b", "a"], disabled_categories=["*"]), True),
            (TrackEventConfig(enabled_categories=["a"], disabled_categories=["*"]), False),
            (TrackEventConfig(enabled_categories=["a", "b"]), False),
            (
                TrackEventConfig(
                    enabled_categories=["a", "b"],
                    disabled_categories=["*"],
                    timestamp_unit_multiplier=1000,
                ),
                True,
            ),
            (
                TrackEventConfig(
                    enabled_categories=["a", "b"],
                    disabled_categories=["*"],
                    filter_debug_annotations=True,
                ),
                False,
            ),
            (
                TrackEventConfig(
                    enabled_categories=["a", "b"], disabled_categories=["*"], enabled_tags=["t"]
                ),
                False,
            ),
            (None, False),
        ],
    )
    def test_categories_in_track_event_configs_are_compared_as_sets(
        self, theirs: TrackEventConfig | None, fits: bool
    ) -> None:
        ours = TrackEventConfig(enabled_categories=["a", "b"], disabled_categories=["*"])
        fields = {} if theirs is None else {"track_event_config": theirs}
        assert fits == TrackEventSource.can_adopt_startup_session(
            config("track_event", track_event_config=ours), config("track_event", **fields)
        )

    def test_configs_without_track_event_config_are_compared_by_other_fields(self) -> None:
        ours, theirs = config("track_event"), config("track_event", target_buffer=3)
        assert TrackEventSource.can_adopt_startup_session(ours, theirs)
        theirs.legacy_config = "x"
        assert not TrackEventSource.can_adopt_startup_session(ours, theirs)
