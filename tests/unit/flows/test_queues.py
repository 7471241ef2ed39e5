"""After an interrupted use of a queue or pipe no flow is wrong; missing flows are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection as connections
from typing import Any, NamedTuple
from unittest import mock

import pytest

from stretto import flows
from stretto.flows.process_queue import TracedQueue
from stretto.flows.queues import TracedSimpleQueue, traced_pipe
from tests.support.recorded_events import BEGIN, Event, record
from tests.support.traced_greeter import flows_installed


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    with flows_installed():
        yield


class Transport(NamedTuple):
    """The methods `put`, `get` and `close` of a queue or pipe."""

    put: Callable[[Any], None]
    get: Callable[[], Any]
    close: Callable[[], None]


def simple_queue() -> Transport:
    queue = TracedSimpleQueue(category="test.queues")
    return Transport(queue.put, queue.get, queue.close)


def pipe() -> Transport:
    near, far = traced_pipe(category="test.queues")
    return Transport(near.send, far.recv, lambda: (near.close(), far.close()))


def queue_with_feeder() -> Transport:
    queue = TracedQueue(category="test.queues")

    def close() -> None:
        queue.close()
        queue.join_thread()

    return Transport(queue.put, queue.get, close)


@contextmanager
def interrupted_after(what: str) -> Iterator[None]:
    """Make the connection's method `what` raise KeyboardInterrupt after its work is done."""
    real = getattr(connections.Connection, what)

    def doing(self: Any, *arguments: Any) -> None:
        real(self, *arguments)
        raise KeyboardInterrupt

    with mock.patch.object(connections.Connection, what, doing):
        yield


def flow_of(events: list[Event], role: str) -> list[int]:
    """Return the flow ids of the messages in this role; a message without a flow has 0."""
    return [
        (event.flows + event.terminating_flows or [0])[0]
        for event in events
        if event.kind == BEGIN and event.args["role"] == role
    ]


@pytest.mark.parametrize("make", [simple_queue, pipe, queue_with_feeder])
def test_interrupted_get_suppresses_the_flow_of_later_items(make: Callable[[], Transport]) -> None:
    way = make()
    with record() as recorded:
        way.put("one")
        assert way.get() == "one"
        way.put("lost")
        with interrupted_after("recv_bytes"), pytest.raises(KeyboardInterrupt):
            way.get()
        way.put("two")
        assert way.get() == "two"
    way.close()
    sent = flow_of(recorded.events, "send")
    assert flow_of(recorded.events, "receive") == [sent[0], 0]
    assert flows.stats() == {"not synchronised": 1}


@pytest.mark.parametrize("make", [simple_queue, pipe])
def test_interrupted_put_suppresses_the_flow_of_later_items(make: Callable[[], Transport]) -> None:
    way = make()
    with record() as recorded:
        way.put("one")
        assert way.get() == "one"
        with interrupted_after("send_bytes"), pytest.raises(KeyboardInterrupt):
            way.put("there")
        way.put("two")
        assert [way.get(), way.get()] == ["there", "two"]
    way.close()
    received = flow_of(recorded.events, "receive")
    assert flow_of(recorded.events, "send") == [received[0], 0]
    assert flows.stats() == {"not synchronised": 1}


def test_use_of_a_closed_queue_does_not_affect_other_users() -> None:
    queue = TracedSimpleQueue(category="test.queues")
    state = queue._counts, queue._category, queue._method.name, queue._key
    other = TracedSimpleQueue(category="test.queues")
    other.close()
    other._counts, *own = state
    other._trace(own[0], own[1], own[2])
    with record() as recorded:
        with pytest.raises(OSError, match="closed"):
            other.put("x")
        with pytest.raises(OSError, match="closed"):
            other.get()
        queue.put("x")
        assert queue.get() == "x"
    queue.close()
    sent = flow_of(recorded.events, "send")
    assert flow_of(recorded.events, "receive") == sent
    assert sent[0]


def test_size_of_a_sent_item_is_not_recorded_if_unknown() -> None:
    way = queue_with_feeder()
    with record() as recorded:
        way.put("x")
        way.get()
    way.close()
    sent, received = (event for event in recorded.events if event.kind == BEGIN)
    assert "bytes" not in sent.args
    assert received.args["bytes"] > 0
