"""What holds while nothing records: every call is correct and does nothing.

Plain unittest, for it also runs where only Stretto is installed (smoke.py), with
the native wheel and with the pure one.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import unittest
from collections.abc import Callable, Generator
from typing import Any

import stretto

category = stretto.Category("smoke", description="of the smoke test", tags=["slow"])


class Slices(unittest.TestCase):
    """`with`, and what passes through it."""

    def test_body_runs_and_values_pass(self) -> None:
        with category.slice("outer", number=1), stretto.slice("inner"):
            reached = True
        self.assertTrue(reached)

    def test_exceptions_pass(self) -> None:
        with self.assertRaises(KeyError), category.slice("failing"):
            raise KeyError("mine")

    def test_a_slice_may_be_stored_and_entered_later(self) -> None:
        first, second = category.slice("first"), category.slice("second")
        with second, first:
            pass

    def test_colliding_argument_names_go_through_args(self) -> None:
        with category.slice("s", args={"name": 1, "track": 2}):
            pass


class Connecting(unittest.TestCase):
    """A service that isn't there."""

    def test_connecting_neither_blocks_nor_raises(self) -> None:
        os.environ["PERFETTO_PRODUCER_SOCK_NAME"] = "/nowhere/at/all"
        connection = stretto.connect()
        self.assertFalse(connection.connected)
        self.assertEqual(stretto.setup_startup_tracing("", timeout_ms=1).state, "aborted")
        stretto.activate_triggers(["a"], ttl_ms=1)
        connection.disconnect()
        stretto.disconnect()


class Categories(unittest.TestCase):
    """What may name one."""

    def test_names(self) -> None:
        self.assertIs(stretto.Category("smoke"), category)
        wrong: list[Any] = [None, 5, b"smoke", []]
        for name in wrong:
            with self.assertRaisesRegex(TypeError, "a category's name must be a str, not <class"):
                stretto.Category(name)
        for bad in ("", "a b", "*", '"'):
            with self.assertRaisesRegex(ValueError, "use a name without quotes"):
                stretto.Category(bad)


class Events(unittest.TestCase):
    """Single calls."""

    def test_they_return_none(self) -> None:
        calls: list[Callable[[], object]] = [
            lambda: category.instant("i", text="x", data={"a": [1, None]}),
            lambda: category.counter("c", 3),
            lambda: stretto.instant("i"),
            lambda: stretto.counter("c", 1.5),
        ]
        for call in calls:
            self.assertIsNone(call())

    def test_begin_and_end_on_tracks(self) -> None:
        track = stretto.Track("job 17", parent=stretto.thread_track())
        category.begin("upload", track=track)
        category.end(track=track)

    def test_flows(self) -> None:
        flow = stretto.Flow()
        with category.slice("from", flow=flow):
            pass
        with category.slice("to", terminating_flow=flow):
            pass

    def test_templates(self) -> None:
        template = category.template("echo", "txid", "bytes", role="send", args={"args": 1})
        template.instant(1, 2, flow=stretto.Flow(), timestamp=stretto.now())
        with template.slice(1), template.instant_at_entry(2, 3, terminating_flow=7):
            pass

    def test_flow_ids(self) -> None:
        self.assertEqual(stretto.flow_id(0, 1), 0xE220A8397B1DCDAF)
        self.assertEqual(stretto.flow_id(2**64 - 1, 2**64 - 1), stretto.flow_id(-1, -1))
        self.assertFalse(stretto.in_event())

    def test_arguments_that_cannot_be_shown_are_left_alone(self) -> None:
        class Unshowable:
            def __repr__(self) -> str:
                raise RuntimeError("not to be called")

        category.instant("i", thing=Unshowable())


class Traced(unittest.TestCase):
    """The decorator keeps what it decorates what it was."""

    def test_function(self) -> None:
        @category.traced
        def add(a: int, b: int = 2) -> int:
            """Add."""
            return a + b

        self.assertEqual(add(1), 3)
        self.assertEqual((add.__name__, add.__doc__), ("add", "Add."))
        original = inspect.unwrap(add)
        self.assertIsNot(original, add)
        self.assertEqual(original(1), 3)

    def test_methods_of_a_class(self) -> None:
        @category.traced
        class Counter:
            step = 1

            def __init__(self) -> None:
                self.value = 0

            def add(self) -> int:
                self.value += self.step
                return self.value

            @staticmethod
            def make() -> Counter:
                return Counter()

        counter = Counter.make()
        self.assertEqual((counter.add(), counter.add()), (1, 2))
        self.assertTrue(inspect.unwrap(Counter.add) is not Counter.add)

    def test_what_is_no_function(self) -> None:
        with self.assertRaisesRegex(TypeError, "traced decorates functions"):
            category.traced(5)

    def test_generator(self) -> None:
        @category.traced
        def count() -> Generator[int, int, None]:
            received = yield 1
            yield received

        running = count()
        self.assertTrue(inspect.isgeneratorfunction(count))
        self.assertEqual(next(running), 1)
        self.assertEqual(running.send(5), 5)

    def test_coroutine(self) -> None:
        @category.traced
        async def answer() -> int:
            await asyncio.sleep(0)
            return 42

        self.assertTrue(inspect.iscoroutinefunction(answer))
        self.assertEqual(asyncio.run(answer()), 42)


if __name__ == "__main__":
    unittest.main()
