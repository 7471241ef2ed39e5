"""Slots of sessions that start and end concurrently on several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

import stretto
from stretto import _native
from stretto.client.track_event import slots, source
from stretto.client.track_event.source import TrackEventSource
from stretto.protos.config import DataSourceConfig, TrackEventConfig
from tests.support.polling import wait_until

CATEGORY = stretto.Category("test.slots")


class Sessions:
    """Creates instances of the track event data source, as a connection to a service does."""

    def __init__(self) -> None:
        self.all: list[TrackEventSource] = []
        self.table = _native.BufferTable()
        self.table.create(1, 1 << 16, _native.RING)

    def make(self, *categories: str) -> TrackEventSource:
        core = _native.ProducerEndpointCore(self.table, len(self.all) + 1)
        events = TrackEventConfig(enabled_categories=[*categories], disabled_categories=["*"])
        made = TrackEventSource()
        made.config = DataSourceConfig(name="track_event", track_event_config=events)
        made.arbiter = _native.Arbiter.in_process(core, 1 << 16, 4096)
        made.target_buffer = 1
        self.all.append(made)
        return made


@pytest.fixture
def sessions() -> Sessions:
    return Sessions()


def at_once(*functions: Callable[[], object]) -> None:
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def slowly(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> None:
    """Replace function `name` of `module` by one that sleeps, so that other threads run."""
    function = getattr(module, name)

    def slow(*arguments: object) -> object:
        result = function(*arguments)
        time.sleep(0.02)  # sleep: lets other threads run before the function returns
        return result

    monkeypatch.setattr(module, name, slow)


def test_sessions_started_concurrently_get_different_slots(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowly(monkeypatch, slots, "take_slot")
    made = [sessions.make("test.slots") for _ in range(4)]
    at_once(*[each.begin for each in made])
    assert len({each.slot for each in made}) == 4
    assert CATEGORY.enabled
    at_once(*[each.end for each in made])
    assert not CATEGORY.enabled


def test_slot_is_freed_after_its_session_was_disabled(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sessions.make("test.slots"), sessions.make("test.slots")
    first.begin()
    slowly(monkeypatch, slots, "disable")
    at_once(first.end, second.begin)
    assert CATEGORY.enabled
    before = TrackEventSource.counts[0]
    CATEGORY.instant("heard")
    second.end()
    assert TrackEventSource.counts[0] == before + 1


def test_session_that_ends_during_its_start_frees_its_slot(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowly(monkeypatch, source.process, "announce_process")
    made = sessions.make("test.slots")
    start = threading.Thread(target=made.begin)
    start.start()
    wait_until(lambda: made.slot is not None)
    made.end()
    start.join()
    assert made.slot is None
    assert not CATEGORY.enabled
    assert made not in TrackEventSource.instances()


def test_last_call_of_an_observer_passes_the_final_state(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[bool] = []
    first, second = sessions.make("test.slots"), sessions.make("test.slots")
    category = stretto.Category("test.slots")
    slots.observe(category, heard.append)
    try:
        slowly(monkeypatch, source._native, "start_instance")
        slowly(monkeypatch, slots, "_notify")
        first.begin()
        at_once(first.end, second.begin)
        assert heard[-1] is True
        second.end()
        assert heard[-1] is False
    finally:
        slots._observers[category].remove(heard.append)


@pytest.mark.parametrize(
    ("wanted", "policy"),
    [
        (DataSourceConfig.BUFFER_EXHAUSTED_UNSPECIFIED, _native.DROP),
        (DataSourceConfig.BUFFER_EXHAUSTED_DROP, _native.DROP),
        (DataSourceConfig.BUFFER_EXHAUSTED_STALL_THEN_ABORT, _native.STALL_THEN_DROP),
        (DataSourceConfig.BUFFER_EXHAUSTED_STALL_THEN_DROP, _native.STALL_THEN_DROP),
    ],
)
def test_buffer_exhausted_policy_follows_the_config(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, wanted: int, policy: int
) -> None:
    policies: list[object] = []
    start_instance = _native.start_instance

    def recorded(*arguments: object) -> object:
        policies.append(arguments[3])
        return start_instance(*arguments)

    monkeypatch.setattr(source._native, "start_instance", recorded)
    made = sessions.make("test.slots")
    made.config.buffer_exhausted_policy = wanted
    made.begin()
    made.end()
    assert policies == [policy]
