"""Recording of more threads than the shared memory has chunks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import stretto
from tests.support.recorded_events import record

CATEGORY = stretto.Category("test.many_threads")
THREADS = 2000
"""More than the 1,862 chunks that threads can hold which start one after the other."""


@contextmanager
def small_stacks() -> Iterator[None]:
    before = threading.stack_size(256 << 10)
    try:
        yield
    finally:
        threading.stack_size(before)


def test_two_thousand_live_threads_are_recorded_without_a_loss():
    barrier = threading.Barrier(THREADS)

    def work(number: int) -> None:
        CATEGORY.instant("before", number=number)
        barrier.wait()
        CATEGORY.instant("after", number=number)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(THREADS)]
    with record() as recorded:
        with small_stacks():
            for thread in threads:
                thread.start()
        for thread in threads:
            thread.join()
    for name in ("before", "after"):
        numbers = [event.args["number"] for event in recorded.events if event.name == name]
        assert sorted(numbers) == list(range(THREADS))
