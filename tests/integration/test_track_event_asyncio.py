"""Each asyncio task has its own track, however tasks interleave."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading

import pytest

import stretto
from tests.support.recorded_events import BEGIN, END, descriptors_of, record

CATEGORY = stretto.Category("test.asyncio")


def slices_by_track(recorded):
    """Return {track: [(name, depth)]}; fail if an END has no BEGIN or a BEGIN no END."""
    stacks, found = {}, {}
    for event in sorted(recorded.events, key=lambda event: event.timestamp):
        stack = stacks.setdefault(event.track, [])
        if event.kind == BEGIN:
            found.setdefault(event.track, []).append((event.name, len(stack)))
            stack.append(event.name)
        elif event.kind == END:
            stack.pop()
    assert not any(stacks.values()), "a slice was left open"
    return found


async def work(name, steps=5):
    with CATEGORY.slice(name):
        for step in range(steps):
            with CATEGORY.slice(f"{name} {step}", step=step):
                await asyncio.sleep(0)
                CATEGORY.instant(f"{name} awake")


def expected(name, steps=5):
    return [(name, 0), *((f"{name} {step}", 1) for step in range(steps))]


def check(recorded, names):
    found = slices_by_track(recorded)
    for name in names:
        tracks = {event.track for event in recorded.events if event.name.startswith(name)}
        (track,) = tracks
        assert found[track] == expected(name)
    assert len(found) >= len(names)
    return found


def test_interleaved_tasks_have_their_own_tracks():
    names = [f"task {letter}" for letter in "abcdef"]

    async def main():
        with CATEGORY.slice("main"):
            await asyncio.gather(*(work(name) for name in names))

    with record() as recorded:
        CATEGORY.instant("outside")
        asyncio.run(main())
        CATEGORY.instant("outside again")
    found = check(recorded, names)
    assert [("main", 0)] in found.values()
    outside = recorded.one("outside").track
    assert outside == recorded.one("outside again").track
    assert outside not in found


def test_task_track_is_named_after_the_coroutine_and_is_below_the_thread_track():
    with record() as recorded:
        CATEGORY.instant("outside")
        asyncio.run(work("x"))
    descriptors = descriptors_of(recorded.trace)
    task = descriptors[recorded.one("x").track]
    assert task.name == "work"
    assert task.parent_uuid == recorded.one("outside").track
    assert not task.has("thread")


def test_tasks_of_a_group_have_their_own_tracks():
    names = [f"child {letter}" for letter in "abc"]

    async def main():
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(work(name))

    with record() as recorded:
        asyncio.run(main())
    check(recorded, names)


def test_tasks_with_a_shared_context_have_their_own_tracks():
    """Tracks belong to tasks, even if several tasks share one context."""
    names = [f"shared {letter}" for letter in "abc"]
    context = contextvars.copy_context()

    async def main():
        tasks = [
            asyncio.get_running_loop().create_task(work(name), context=context) for name in names
        ]
        await asyncio.gather(*tasks)

    with record() as recorded:
        asyncio.run(main())
    check(recorded, names)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks_have_their_own_tracks():
    names = [f"eager {letter}" for letter in "abc"]

    async def main():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        with CATEGORY.slice("main"):
            tasks = [asyncio.create_task(work(name)) for name in names]
            CATEGORY.instant("back in main")
            await asyncio.gather(*tasks)
            with CATEGORY.slice("after"):
                pass

    with record() as recorded:
        asyncio.run(main())
    found = check(recorded, names)
    assert [("main", 0), ("after", 1)] in found.values()
    assert recorded.one("back in main").track == recorded.one("main").track


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_task_that_never_waits_has_its_own_track():
    async def main():
        loop = asyncio.get_running_loop()
        loop.set_task_factory(asyncio.eager_task_factory)
        with CATEGORY.slice("main"):
            task = asyncio.create_task(work("at once", steps=0))
            assert task.done()
            CATEGORY.instant("main again")

    with record() as recorded:
        asyncio.run(main())
    assert recorded.one("at once").track != recorded.one("main").track
    assert recorded.one("main again").track == recorded.one("main").track


def test_tasks_of_the_pure_python_task_class_have_their_own_tracks():
    async def main():
        loop = asyncio.get_running_loop()
        loop.set_task_factory(
            lambda loop, coro, **options: asyncio.tasks._PyTask(coro, loop=loop, **options)
        )
        await asyncio.gather(work("python a"), work("python b"))

    with record() as recorded:
        asyncio.run(main())
    check(recorded, ["python a", "python b"])


def test_cancelled_and_failing_tasks_end_their_slices():
    async def fails():
        with CATEGORY.slice("fails"):
            await asyncio.sleep(0)
            raise ValueError

    async def main():
        forever = asyncio.ensure_future(work("forever", steps=10**9))
        await asyncio.gather(fails(), return_exceptions=True)
        forever.cancel()
        await asyncio.gather(forever, return_exceptions=True)

    with record() as recorded:
        asyncio.run(main())
    slices_by_track(recorded)


def test_slice_ended_by_another_task_ends_on_the_track_where_it_began():
    async def begin():
        slice_ = CATEGORY.slice("handed over")
        slice_.__enter__()
        return slice_

    async def finish(slice_):
        with CATEGORY.slice("other"):
            slice_.__exit__(None, None, None)

    async def main():
        slice_ = await asyncio.create_task(begin())
        await asyncio.create_task(finish(slice_))

    with record() as recorded:
        asyncio.run(main())
    assert sorted(slices_by_track(recorded).values()) == [[("handed over", 0)], [("other", 0)]]


def test_call_of_end_does_not_end_slices_of_other_tasks():
    async def one(name):
        CATEGORY.begin(name)
        await asyncio.sleep(0)
        CATEGORY.end()
        CATEGORY.end()

    async def main():
        with CATEGORY.slice("main"):
            await asyncio.gather(one("a"), one("b"))

    with record() as recorded:
        asyncio.run(main())
    assert sorted(slices_by_track(recorded).values()) == [[("a", 0)], [("b", 0)], [("main", 0)]]


def test_callbacks_and_executors_use_the_tracks_of_their_threads():
    async def main():
        loop = asyncio.get_running_loop()
        loop.call_soon(CATEGORY.instant, "callback")
        await asyncio.to_thread(CATEGORY.instant, "executor")
        await asyncio.sleep(0)

    with record() as recorded:
        CATEGORY.instant("here")
        asyncio.run(main())
    assert recorded.one("callback").track == recorded.one("here").track
    assert recorded.one("executor").track != recorded.one("here").track


def test_tasks_of_loops_in_several_threads_have_their_own_tracks():
    names = [f"loop {letter}" for letter in "abc"]
    with record() as recorded:
        threads = [
            threading.Thread(target=lambda name=name: asyncio.run(work(name))) for name in names
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    check(recorded, names)


def test_asynchronous_generators_use_the_track_of_their_task():
    async def numbers():
        for number in range(3):
            with CATEGORY.slice("generate", number=number):
                yield number

    async def consume(name):
        async for number in numbers():
            with CATEGORY.slice(f"{name} {number}"):
                await asyncio.sleep(0)

    async def main():
        await asyncio.gather(consume("a"), consume("b"))

    with record() as recorded:
        asyncio.run(main())
    per_task = [
        ("generate", 0),
        ("{} 0", 1),
        ("generate", 0),
        ("{} 1", 1),
        ("generate", 0),
        ("{} 2", 1),
    ]
    assert sorted(slices_by_track(recorded).values(), key=str) == [
        [(text.format(name), depth) for text, depth in per_task] for name in "ab"
    ]


def test_tasks_have_their_own_tracks_in_a_session_started_within_a_task():
    async def main():
        slice_ = CATEGORY.slice("before")
        with slice_, record() as recorded:
            await asyncio.gather(work("a"), work("b"))
        return recorded

    check(asyncio.run(main()), ["a", "b"])


def test_many_short_tasks_have_their_own_tracks():
    async def short(number):
        CATEGORY.instant("short", number=number)

    async def main():
        for number in range(2000):
            await asyncio.create_task(short(number))

    with record() as recorded:
        asyncio.run(main())
    assert len({event.track for event in recorded.events}) == 2000
