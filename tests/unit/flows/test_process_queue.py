"""`TracedQueue` and `TracedJoinableQueue` pass items unchanged and record their flows."""

from __future__ import annotations

import gc
import multiprocessing
import queue
import threading
import weakref
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest

from stretto import flows
from stretto.flows import process_queue
from stretto.flows.process_queue import TracedJoinableQueue, TracedQueue
from tests.support.recorded_events import END, Event, record
from tests.support.traced_greeter import flows_installed

ITEMS = 200


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    with flows_installed():
        yield


def ids(events: list[Event], role: str) -> list[int]:
    return [
        (event.flows + event.terminating_flows or [0])[0]
        for event in events
        if event.kind != END and event.args["role"] == role
    ]


def close(*queues: Any) -> None:
    for each in queues:
        each.close()
        each.join_thread()


def produce(jobs: TracedQueue, sink: Any, first: int) -> None:
    """In another process, put every third number into the queue."""
    flows.install()
    with record() as recorded:
        for number in range(first, ITEMS, 3):
            jobs.put(number)
    sink.put(("put", dict(zip(range(first, ITEMS, 3), ids(recorded.events, "send"), strict=True))))


def consume(jobs: TracedQueue, sink: Any) -> None:
    """In another process, get items from the queue until None."""
    flows.install()
    with record() as recorded:
        items = list(iter(jobs.get, None))
    received = ids(recorded.events, "receive")
    sink.put(("got", dict(zip(items, received, strict=False))))


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_items_of_three_producers_and_two_consumers_have_flows(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    jobs, sink = TracedQueue(category="test.queue", context=context), context.Queue()
    producers = [context.Process(target=produce, args=(jobs, sink, first)) for first in range(3)]
    consumers = [context.Process(target=consume, args=(jobs, sink)) for _ in range(2)]
    for process in producers + consumers:
        process.start()
    answers = [sink.get(timeout=60) for _ in producers]
    # A thread of each producer writes its items; when the process has ended, all are written.
    for process in producers:
        process.join()
    for _ in consumers:
        jobs.put(None)
    answers += [sink.get(timeout=60) for _ in consumers]
    for process in consumers:
        process.join()
    close(jobs, sink)
    put: dict[int, int] = {}
    got: dict[int, int] = {}
    for what, numbers in answers:
        (put if what == "put" else got).update(numbers)
    assert sorted(put) == list(range(ITEMS))
    assert got == put
    assert len(set(put.values())) == ITEMS
    assert 0 not in put.values()


def test_items_of_several_threads_through_a_full_queue_have_flows() -> None:
    jobs = TracedQueue(3, category="test.queue", name="job")
    got: list[int] = []

    def put(first: int) -> None:
        for number in range(first, ITEMS, 4):
            jobs.put(number)

    def get() -> None:
        got.extend(jobs.get() for _ in range(ITEMS // 2))

    threads = [threading.Thread(target=put, args=(first,)) for first in range(4)]
    threads += [threading.Thread(target=get) for _ in range(2)]
    with record() as recorded:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    close(jobs)
    assert sorted(got) == list(range(ITEMS))
    sent, received = ids(recorded.events, "send"), ids(recorded.events, "receive")
    assert sorted(sent) == sorted(received)
    assert len(set(sent)) == ITEMS
    assert {event.args["method"] for event in recorded.events if event.kind != END} == {"job"}


def test_items_of_a_joinable_queue_have_flows() -> None:
    jobs = TracedJoinableQueue(category="test.queue")
    with record() as recorded:
        for number in range(5):
            jobs.put(number)
        for number in range(5):
            assert jobs.get() == number
            jobs.task_done()
        jobs.join()
    close(jobs)
    assert ids(recorded.events, "send") == ids(recorded.events, "receive")


def test_item_that_cannot_be_pickled_does_not_affect_flows_of_other_items(
    capfd: pytest.CaptureFixture[str],
) -> None:
    jobs = TracedQueue(category="test.queue")
    with record() as recorded:
        for item in ("a", lambda: None, "b"):
            jobs.put(item)
        assert [jobs.get(timeout=30) for _ in range(2)] == ["a", "b"]
    close(jobs)
    sent = ids(recorded.events, "send")
    assert ids(recorded.events, "receive") == [sent[0], sent[2]]
    assert "pickle" in capfd.readouterr().err


def test_items_sent_before_flow_tracing_is_installed_are_counted() -> None:
    flows.uninstall()
    jobs = TracedQueue(category="test.queue")
    jobs.put(1)
    assert jobs.get() == 1
    flows.install()
    with record() as recorded:
        jobs.put(2)
        assert jobs.get() == 2
    close(jobs)
    assert ids(recorded.events, "send") == ids(recorded.events, "receive") != [0]


def test_flow_tracing_adds_no_bytes_to_queue_items() -> None:
    jobs: Any = TracedQueue(category="test.queue")
    with record():
        jobs.put({"a": 1})
        assert jobs._reader.recv_bytes() == bytes(ForkingPickler.dumps({"a": 1}))
    close(jobs)


def test_full_and_empty_queues_raise_and_record_nothing() -> None:
    jobs = TracedQueue(1, category="test.queue")
    with record() as recorded:
        with pytest.raises(queue.Empty):
            jobs.get_nowait()
        jobs.put(1)
        with pytest.raises(queue.Full):
            jobs.put(2, timeout=0.01)
        assert jobs.get(timeout=30) == 1
        with pytest.raises(queue.Empty):
            jobs.get(timeout=0.01)
    close(jobs)
    assert recorded.kinds == "BEBE"


def test_queue_item_whose_flow_number_was_overwritten_has_no_flow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process_queue, "SIZE", 4)
    jobs: Any = TracedQueue(category="test.queue")
    with record() as recorded:
        for number in range(10):
            jobs.put(number)
        while jobs._numbers[0] < 10:
            threading.Event().wait(0.001)
        assert [jobs.get() for _ in range(10)] == list(range(10))
    close(jobs)
    sent, received = ids(recorded.events, "send"), ids(recorded.events, "receive")
    assert received == [0] * 7 + sent[7:]


def test_feeder_thread_of_a_deleted_queue_ends() -> None:
    jobs: Any = TracedQueue(category="test.queue")
    jobs.put(1)
    feeder, gone = jobs._thread, weakref.ref(jobs)
    gc.disable()
    try:
        del jobs
        assert gone() is None
    finally:
        gc.enable()
    feeder.join(30)
    assert not feeder.is_alive()
