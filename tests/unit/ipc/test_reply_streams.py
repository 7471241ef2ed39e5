"""Reply streams are sent at the client's speed; their queue is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stretto.base.errors import ConfigError
from stretto.ipc.reply_streams import MAX_QUEUED_BYTES, MAX_STREAMS, ReplyStreams
from stretto.ipc.service import Raw
from stretto.testing.fake_task_runner import FakeTaskRunner


class FakeConnection:
    """A connection whose number of queued bytes is set by the test."""

    def __init__(self) -> None:
        self.pending_bytes = 0


class FakeDeferred:
    """A deferred reply that records its answers."""

    def __init__(self, *, pending: bool = True) -> None:
        self.pending = pending
        self.answers: list[Any] = []

    def resolve(self, reply: Raw, *, has_more: bool = False) -> None:
        self.answers.append((reply.data, has_more))

    def reject(self) -> None:
        self.answers.append(None)


class World:
    """The reply streams of one connection."""

    def __init__(self) -> None:
        self.runner = FakeTaskRunner()
        self.connection = FakeConnection()
        self.streams = ReplyStreams(self.runner, self.connection)  # type: ignore[arg-type]
        self.made: list[int] = []

    def parts(self, count: int) -> Iterator[Raw]:
        for number in range(count):
            self.made.append(number)
            yield Raw(b"%d" % number)

    def add(self, parts: Iterator[Raw], *, pending: bool = True) -> FakeDeferred:
        deferred = FakeDeferred(pending=pending)
        self.streams.add(parts, deferred)  # type: ignore[arg-type]
        return deferred


@pytest.fixture
def world() -> World:
    return World()


def test_all_parts_and_an_empty_last_part_are_sent(world: World) -> None:
    deferred = world.add(world.parts(2))
    assert deferred.answers == []  # The parts are sent by a task that has not run yet.
    world.runner.run_until_idle()
    assert deferred.answers == [(b"0", True), (b"1", True), (b"", False)]


def test_streams_are_sent_one_after_the_other(world: World) -> None:
    first, second = world.add(world.parts(2)), world.add(world.parts(1))
    world.runner.run_until_idle()
    assert world.made == [0, 1, 0]
    assert (len(first.answers), len(second.answers)) == (3, 2)


def test_no_reply_part_is_made_while_the_send_queue_is_long(world: World) -> None:
    world.connection.pending_bytes = MAX_QUEUED_BYTES + 1
    deferred = world.add(world.parts(2))
    world.runner.run_until_idle()
    world.streams.resume()
    world.runner.run_until_idle()
    assert world.made == deferred.answers == []
    world.connection.pending_bytes = MAX_QUEUED_BYTES
    world.streams.resume()
    world.runner.run_until_idle()
    assert world.made == [0, 1]


def test_repeated_resume_sends_each_part_once(world: World) -> None:
    deferred = world.add(world.parts(1))
    for _ in range(5):
        world.streams.resume()
    world.runner.run_until_idle()
    assert deferred.answers == [(b"0", True), (b"", False)]


def test_streams_above_the_maximum_number_are_rejected(world: World) -> None:
    deferreds = [world.add(world.parts(0)) for _ in range(MAX_STREAMS + 1)]
    assert [each.answers for each in deferreds] == [[]] * MAX_STREAMS + [[None]]
    world.runner.run_until_idle()
    assert world.add(world.parts(0)).answers == []


def test_request_that_expects_no_reply_makes_no_reply_parts(world: World) -> None:
    world.add(world.parts(3), pending=False)
    world.runner.run_until_idle()
    assert world.made == []


def test_failed_stream_is_rejected_and_the_next_stream_is_sent(world: World) -> None:
    def failing() -> Iterator[Raw]:
        yield Raw(b"one")
        raise ConfigError("no more")

    failed, good = world.add(failing()), world.add(world.parts(1))
    world.runner.run_until_idle()
    assert failed.answers == [(b"one", True), None]
    assert good.answers == [(b"0", True), (b"", False)]


def test_no_part_of_a_reply_is_sent_after_close(world: World) -> None:
    deferred = world.add(world.parts(2))
    world.streams.close()
    world.runner.run_until_idle()
    assert deferred.answers == []
