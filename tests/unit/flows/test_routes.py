"""Requests are named by their routes, which are found after the requests have begun."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import stretto
from stretto.flows import incoming, routes
from tests.support.recorded_events import BEGIN, Event, Recorded, record
from tests.support.traced_greeter import flows_installed

http = stretto.Category("http")


@pytest.fixture(autouse=True)
def awaited(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(routes.RoutedExchange, "are_awaited", True)
    with flows_installed():
        yield


def request(method: str = "GET") -> routes.RoutedExchange:
    return routes.RoutedExchange(category="http", method=method, key=7)


@contextmanager
def recorded_request() -> Iterator[tuple[Recorded, routes.RoutedExchange]]:
    with record() as recorded, request() as handled:
        yield recorded, handled


def beginnings(recorded: Recorded) -> list[Event]:
    return [event for event in recorded.events if event.kind == BEGIN]


def test_slice_has_the_name_of_the_route_and_begins_before_the_route_is_found() -> None:
    with recorded_request() as (recorded, handled):
        http.instant("before")
        assert routes.found("/users/{name}")
        handled.reply()
        assert incoming() == 7
    assert incoming() == 0
    assert [event.name for event in recorded.events] == [
        *("before", "GET /users/{name}", "reply", ""),
    ]
    before, begin, reply, _ = recorded.events
    assert begin.timestamp < before.timestamp
    assert begin.flows == reply.flows == [7]
    assert begin.args["method"] == reply.args["method"] == begin.name


def test_request_without_a_route_has_the_name_of_the_method() -> None:
    with recorded_request() as (recorded, _):
        http.instant("before")
    assert [event.name for event in recorded.events] == ["before", "GET", ""]
    assert recorded.events[1].timestamp < recorded.events[0].timestamp


def test_request_without_a_route_begins_with_its_reply() -> None:
    with recorded_request() as (recorded, handled):
        handled.reply()
        assert routes.found("/late")
    assert [event.name for event in recorded.events] == ["GET", "reply", ""]


def test_route_of_a_mounted_application_begins_with_its_path() -> None:
    with recorded_request() as (recorded, _), routes.below("/shops/{shop}"):
        with routes.below("/users"):
            assert routes.found("/{name}")
        assert routes.mounted.get() == "/shops/{shop}"
    assert routes.mounted.get() == ""
    assert [event.name for event in recorded.events] == ["GET /shops/{shop}/users/{name}", ""]


def test_request_of_a_mounted_application_without_routes_has_the_template_of_its_path() -> None:
    with recorded_request() as (recorded, handled), routes.below("/static"):
        handled.reply()
    assert [event.name for event in recorded.events] == ["GET /static/{path:path}", "reply", ""]


def test_slice_begins_at_once_if_no_framework_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes.RoutedExchange, "are_awaited", False)
    with recorded_request() as (recorded, _):
        http.instant("inside")
        assert routes.found("/late")
    assert [event.name for event in recorded.events] == ["GET", "inside", ""]


def test_only_the_first_route_names_the_slice() -> None:
    with recorded_request() as (recorded, handled):
        assert routes.found("/first")
        assert routes.found("/second")
    handled.found("/after the end")
    assert [event.name for event in beginnings(recorded)] == ["GET /first"]


def test_route_found_by_another_task_names_the_slice_on_the_track_of_the_request() -> None:
    async def serve() -> None:
        with request():
            http.instant("of the request")
            await asyncio.create_task(find())

    async def find() -> None:
        http.instant("of the other task")
        assert routes.found("/users/{name}")

    with record() as recorded:
        asyncio.run(serve())
    tracks = {event.name: event.track for event in recorded.events}
    assert tracks["GET /users/{name}"] == tracks["of the request"] == tracks[""]
    assert tracks["GET /users/{name}"] != tracks["of the other task"]


def test_nothing_is_recorded_without_a_session_or_outside_of_a_request() -> None:
    assert not routes.found("/outside")
    with request() as early, record() as recorded:
        routes.found("/early")
        early.reply()
    assert recorded.events == []
