"""Tests without a recording: every call of the public API is valid and records nothing.

Uses only unittest, because it also runs where only Stretto is installed (smoke.py), with
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
    """Tests of slices as context managers."""

    def test_body_of_a_slice_runs(self) -> None:
        with category.slice("outer", number=1), stretto.slice("inner"):
            reached = True
        self.assertTrue(reached)

    def test_exceptions_propagate_from_slices(self) -> None:
        with self.assertRaises(KeyError), category.slice("failing"):
            raise KeyError("mine")

    def test_slice_can_be_stored_and_entered_later(self) -> None:
        first, second = category.slice("first"), category.slice("second")
        with second, first:
            pass

    def test_reserved_argument_names_are_passed_in_args(self) -> None:
        with category.slice("s", args={"name": 1, "track": 2}):
            pass


class Connecting(unittest.TestCase):
    """Tests of `stretto.connect` without a service."""

    def test_connecting_neither_blocks_nor_raises(self) -> None:
        os.environ["PERFETTO_PRODUCER_SOCK_NAME"] = "/nowhere/at/all"
        connection = stretto.connect()
        self.assertFalse(connection.connected)
        self.assertEqual(stretto.setup_startup_tracing("", timeout_ms=1).state, "aborted")
        stretto.activate_triggers(["a"], ttl_ms=1)
        connection.disconnect()
        stretto.disconnect()


class Categories(unittest.TestCase):
    """Tests of the names of categories."""

    def test_invalid_category_names_are_refused(self) -> None:
        self.assertIs(stretto.Category("smoke"), category)
        wrong: list[Any] = [None, 5, b"smoke", []]
        for name in wrong:
            with self.assertRaisesRegex(TypeError, "a category's name must be a str, not <class"):
                stretto.Category(name)
        for bad in ("", "a b", "*", '"'):
            with self.assertRaisesRegex(ValueError, "use a name without quotes"):
                stretto.Category(bad)


class Events(unittest.TestCase):
    """Tests of the functions that write single events."""

    def test_instants_and_counters_return_none(self) -> None:
        calls: list[Callable[[], object]] = [
            lambda: category.instant("i", text="x", data={"a": [1, None]}),
            lambda: category.counter("c", 3),
            lambda: stretto.instant("i"),
            lambda: stretto.counter("c", 1.5),
        ]
        for call in calls:
            self.assertIsNone(call())

    def test_begin_and_end_accept_a_track(self) -> None:
        track = stretto.Track("job 17", parent=stretto.thread_track())
        category.begin("upload", track=track)
        category.end(track=track)

    def test_slices_accept_flows(self) -> None:
        flow = stretto.Flow()
        with category.slice("from", flow=flow):
            pass
        with category.slice("to", terminating_flow=flow):
            pass

    def test_slice_templates_accept_flows_and_timestamps(self) -> None:
        template = category.template("echo", "txid", "bytes", role="send", args={"args": 1})
        template.instant(1, 2, flow=stretto.Flow(), timestamp=stretto.now())
        with template.slice(1), template.instant_at_entry(2, 3, terminating_flow=7):
            pass

    def test_flow_id_has_its_specified_value(self) -> None:
        self.assertEqual(stretto.flow_id(0, 1), 0xE220A8397B1DCDAF)
        self.assertEqual(stretto.flow_id(2**64 - 1, 2**64 - 1), stretto.flow_id(-1, -1))
        self.assertFalse(stretto.in_event())

    def test_repr_of_arguments_is_not_called(self) -> None:
        class Unshowable:
            def __repr__(self) -> str:
                raise RuntimeError("not to be called")

        category.instant("i", thing=Unshowable())


class Traced(unittest.TestCase):
    """Tests that the decorator `traced` keeps the type and the metadata of functions."""

    def test_decorated_function_keeps_its_metadata(self) -> None:
        @category.traced
        def add(a: int, b: int = 2) -> int:
            """Return the sum."""
            return a + b

        self.assertEqual(add(1), 3)
        self.assertEqual((add.__name__, add.__doc__), ("add", "Return the sum."))
        original = inspect.unwrap(add)
        self.assertIsNot(original, add)
        self.assertEqual(original(1), 3)

    def test_methods_of_a_decorated_class_work(self) -> None:
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

    def test_decorating_a_number_is_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "traced decorates functions"):
            category.traced(5)

    def test_decorated_generator_function_stays_a_generator_function(self) -> None:
        @category.traced
        def count() -> Generator[int, int, None]:
            received = yield 1
            yield received

        running = count()
        self.assertTrue(inspect.isgeneratorfunction(count))
        self.assertEqual(next(running), 1)
        self.assertEqual(running.send(5), 5)

    def test_decorated_coroutine_function_stays_a_coroutine_function(self) -> None:
        @category.traced
        async def answer() -> int:
            await asyncio.sleep(0)
            return 42

        self.assertTrue(inspect.iscoroutinefunction(answer))
        self.assertEqual(asyncio.run(answer()), 42)


if __name__ == "__main__":
    unittest.main()
