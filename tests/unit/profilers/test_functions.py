"""Function tracing: the recorded slices equal the calls that a simple profiler records."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from typing import Any

import pytest
from hypothesis import given

import stretto
from stretto import _pyhooks
from stretto.base.errors import ConfigError
from stretto.profilers import install, problems
from tests.support.call_programs import (
    PROGRAMS,
    catches,
    leaf,
    random_steps,
    recursive,
    runs_asyncio,
    step_catch,
    throws,
)
from tests.support.call_slices import (
    BEGIN,
    END,
    OPEN,
    PROFILED,
    Call,
    Recorded,
    expected_calls,
    recorded,
)

CATEGORY = "python.functions"
HERE = __file__


@pytest.fixture(autouse=True)
def options(function_options: Callable[..., None]) -> Callable[..., None]:
    return function_options


def traced(function: Callable[[], object]) -> list[Call]:
    with recorded(CATEGORY) as result:
        function()
    return result.calls()


def made(name: str, path: str, line: int = 0) -> Callable[[], None]:
    """Return a function with the given name and file, defined after `line` lines."""
    scope: dict[str, Any] = {}
    exec(compile("\n" * line + "def f(): pass", "x", "exec"), scope)
    function: Any = scope["f"]
    function.__code__ = function.__code__.replace(co_qualname=name, co_filename=path)
    return function  # type: ignore[no-any-return]


class TestNestingOfSlices:
    @pytest.mark.parametrize("program", PROGRAMS)
    def test_slices_equal_the_calls_that_a_profiler_records(
        self, program: Callable[[], object]
    ) -> None:
        assert traced(program) == expected_calls(program)

    def test_slices_have_name_category_and_location(self) -> None:
        with recorded(CATEGORY) as result:
            leaf()
        begin = result.events[0]
        assert (begin.name, begin.categories) == ("leaf", [CATEGORY])
        code = leaf.__code__
        assert begin.location == (code.co_filename, code.co_firstlineno)

    @pytest.mark.parametrize("count", [100, 700, 2500])
    def test_names_of_many_functions_are_correct_in_a_trace_of_many_chunks(
        self, options: Callable[..., None], count: int
    ) -> None:
        options(include=["/many"])
        functions = [made(f"function_{n}", f"/many/module_{n % 7}.py", n) for n in range(count)]
        rounds = 3500 // count + 1
        with recorded(CATEGORY) as result:
            for _ in range(rounds):
                for function in functions:
                    function()
        begins = [(event.name, event.location) for event in result.events if event.name]
        assert begins == rounds * [
            (f"function_{n}", (f"/many/module_{n % 7}.py", n + 1)) for n in range(count)
        ]

    def test_names_of_c_functions_are_correct_in_a_trace_of_many_chunks(
        self, options: Callable[..., None]
    ) -> None:
        options(c_functions=True)

        def program() -> None:
            for _ in range(1500):
                abs(1)
                [].append(1)

        inner: list[Call] = [("builtins.abs", []), ("list.append", [])]
        assert traced(program) == [(program.__qualname__, 1500 * inner)]

    def test_unusual_function_names_are_recorded_in_a_trace_of_many_chunks(
        self, options: Callable[..., None]
    ) -> None:
        options(include=["/many"])
        long, file = "x" * 300, "/many/ä.py"
        odd = {
            "bäcker": file, "€" * 90: file, long: file, "\ud800": file,
            "plain": "/many/\udcff.py", "far": "/many/" + "y" * 300, "": file,
        }  # fmt: skip
        shown = {"\ud800": "\\ud800", "/many/\udcff.py": "/many/\\udcff.py"}
        functions = [made(name, path) for name, path in odd.items()]
        others = [made(f"other_{number}", file) for number in range(60)]
        with recorded(CATEGORY) as result:
            for _ in range(50):
                for function in (*functions, *others):
                    function()
        begins = [event for event in result.events if event.type == BEGIN]
        assert len(begins) == 50 * 67
        for n, name in enumerate(odd):
            path = odd[name]
            place = None if len(path) > 256 else (shown.get(path, path), 1)
            for event in begins[n::67]:
                assert (event.name, event.location) == (shown.get(name, name), place)

    def test_exception_thrown_into_a_generator_with_an_unusual_name_is_raised(
        self, options: Callable[..., None]
    ) -> None:
        options(include=["/many", __file__])
        caught = []

        def generator() -> Generator[int, None, None]:
            try:
                yield 1
            except KeyError as error:
                caught.append(error)
                yield 2

        generator.__code__ = generator.__code__.replace(co_qualname="\ud800")
        fills_a_chunk = made("work", "/many/work.py")
        with recorded(CATEGORY):
            for number in range(3):
                running = generator()
                next(running)
                for _ in range(1200):
                    fills_a_chunk()
                assert running.throw(KeyError(number)) == 2
        assert [error.args for error in caught] == [(0,), (1,), (2,)]

    @pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 does not report exceptions")
    def test_end_of_a_function_slice_names_the_exception_that_left_the_function(self) -> None:
        class Late(Exception):  # noqa: N818
            pass

        def fails() -> None:
            raise Late

        def outer() -> None:
            try:
                fails()
            finally:
                leaf()

        with recorded(CATEGORY) as result, pytest.raises(Late):
            outer()
        raised = [event.args for event in result.events if event.type == END]
        assert raised == [{"exception": Late.__qualname__}, {}, {"exception": Late.__qualname__}]

    def test_slices_of_the_program_are_nested_in_function_slices(self) -> None:
        own = stretto.Category("test.own")

        def program() -> None:
            with own.slice("mine"):
                leaf()

        with recorded(CATEGORY, own.name) as result:
            program()
        name = program.__qualname__
        assert result.calls() == [(name, [("mine", [("leaf", [])])])]

    def test_calls_of_a_task_are_on_the_track_of_the_thread(self) -> None:
        with recorded(CATEGORY) as result:
            runs_asyncio()
        assert {event.track for event in result.events} == {0}


class TestRandomPrograms:
    @given(random_steps)
    def test_slices_of_a_random_program_equal_its_calls(self, program: list[Any]) -> None:
        def body() -> None:
            step_catch(program)

        assert traced(body) == expected_calls(body)


class TestStartAndStopOfTracing:
    def test_calls_that_began_before_the_session_record_no_end(self) -> None:
        result = Recorded()
        manager = recorded(CATEGORY)

        def inner() -> None:
            nonlocal result
            result = manager.__enter__()
            leaf()

        def outer() -> None:
            inner()
            leaf()

        outer()
        leaf()
        manager.__exit__(None, None, None)
        assert result.calls() == [("leaf", []), ("leaf", []), ("leaf", [])]

    def test_calls_that_outlast_the_session_have_no_end(self) -> None:
        manager = recorded(CATEGORY)
        result = manager.__enter__()

        def last() -> None:
            leaf()
            manager.__exit__(None, None, None)
            leaf()

        last()
        assert result.calls() == [(last.__qualname__, [("leaf", []), (OPEN, [])])]

    def test_open_call_of_an_earlier_session_is_not_ended_in_a_new_session(self) -> None:
        first, second = recorded(CATEGORY), recorded(CATEGORY)
        first.__enter__()

        def between() -> Recorded:
            first.__exit__(None, None, None)
            return second.__enter__()

        result = between()
        leaf()
        second.__exit__(None, None, None)
        assert result.calls() == [("leaf", [])]

    def test_two_concurrent_sessions_record_the_same_calls(self) -> None:
        with recorded(CATEGORY) as whole:
            recursive(1)
            with recorded(CATEGORY) as part:
                recursive(1)
            recursive(1)
        one = ("recursive", [("recursive", []), ("leaf", [])])
        assert whole.calls() == [one, one, one]
        assert part.calls() == [one]

    def test_function_tracing_runs_only_during_a_session(self) -> None:
        assert not _pyhooks.running()
        with recorded(CATEGORY):
            assert _pyhooks.running()
        assert not _pyhooks.running()
        assert sys.getprofile() is None


def spin(milliseconds: float) -> None:
    until = stretto.now() + int(milliseconds * 1e6)
    while stretto.now() < until:
        pass


class TestTracingOptions:
    def test_calls_deeper_than_the_maximum_depth_are_omitted_and_counted(
        self, options: Callable[..., None]
    ) -> None:
        options(max_depth=3)
        calls = traced(lambda: recursive(5))
        flat = ("recursive", [("recursive", []), ("leaf", [])])
        assert calls == [
            (
                "TestTracingOptions.test_calls_deeper_than_the_maximum_depth_are_omitted_and_counted.<locals>.<lambda>",
                [flat],
            )
        ]
        # Four calls of `recursive` and four of `leaf` are too deep.
        assert _pyhooks.stats()["too_deep"] == 4 + 4
        assert "deeper than 3" in problems()[0]

    def test_calls_below_the_minimum_duration_are_omitted_and_counted(
        self, options: Callable[..., None]
    ) -> None:
        options(min_duration_ns=2_000_000)

        def long_enough() -> None:
            leaf()
            spin(3)
            leaf()

        def program() -> None:
            leaf()
            long_enough()
            leaf()

        expected = (long_enough.__qualname__, [("spin", [])])
        assert traced(program) == [(program.__qualname__, [expected])]
        short = _pyhooks.stats()["too_short"]
        assert short >= 4
        assert problems() == [f"left out: {short} calls shorter than 2000 us (--min-duration)"]

    def test_begin_of_a_long_call_is_recorded_before_an_event_inside_of_it(
        self, options: Callable[..., None]
    ) -> None:
        options(min_duration_ns=2_000_000)
        own = stretto.Category("test.own")

        def program() -> None:
            until = stretto.now() + 3_000_000
            while stretto.now() < until:
                pass
            inner()

        def inner() -> None:
            own.instant("within")

        with recorded(CATEGORY, own.name) as result:
            program()
        # On a busy machine `inner` may be long, too.
        names = [event.name for event in result.events if event.name != inner.__qualname__]
        assert names[:2] == [program.__qualname__, "within"]

    def test_event_at_the_start_of_a_long_call_is_written_before_the_begin_of_the_call(
        self, options: Callable[..., None]
    ) -> None:
        options(min_duration_ns=2_000_000)
        own = stretto.Category("test.own")

        def program() -> None:
            own.instant("first")
            spin(3)

        with recorded(CATEGORY, own.name) as result:
            program()
        names = [event.name for event in result.events]
        assert names == ["first", program.__qualname__, "spin", "", ""]

    def test_unfinished_long_call_is_recorded_when_it_calls_another_function(
        self, options: Callable[..., None]
    ) -> None:
        options(min_duration_ns=2_000_000)
        manager = recorded(CATEGORY)
        result = manager.__enter__()

        def killed() -> None:
            until = stretto.now() + 3_000_000
            while stretto.now() < until:
                pass
            leaf()
            manager.__exit__(None, None, None)

        killed()
        [(name, inside)] = result.calls()
        # On a busy machine `leaf` may be long, too.
        assert (name, inside[-1]) == (killed.__qualname__, (OPEN, []))

    def test_only_included_functions_are_recorded(self, options: Callable[..., None]) -> None:
        import json

        options(include=["json"])
        with recorded(CATEGORY) as result:
            leaf()
            json.loads("[1]")
        assert {event.location[0] for event in result.events if event.location} <= {
            json.__file__,
            json.decoder.__file__,
        }
        assert result.calls()[0][0] == "json.loads"

    def test_excluded_functions_are_not_recorded(self, options: Callable[..., None]) -> None:
        options(include=(), exclude=PROFILED)
        with recorded(CATEGORY) as result:
            leaf()
            throws()
        files = {event.location[0] for event in result.events if event.location}
        assert files
        assert not files & {HERE, leaf.__code__.co_filename}

    def test_functions_of_stretto_are_not_recorded(self, options: Callable[..., None]) -> None:
        options(include=[])
        with recorded(CATEGORY) as result:
            stretto.Category("test.another")
            list(problems())
        files = {event.location[0] for event in result.events if event.location}
        assert not {file for file in files if "/stretto/" in file and "tests" not in file}

    def test_c_functions_are_recorded_if_enabled(self, options: Callable[..., None]) -> None:
        options(c_functions=True)

        def program() -> None:
            [].append(1)
            len([])
            sorted([2, 1], key=lambda _: leaf())
            with pytest.raises(ValueError):  # noqa: PT011
                [].index(1)
            str.upper("a")

        (name, calls), *_ = traced(program)
        assert name == program.__qualname__
        key = f"{name}.<locals>.<lambda>"
        assert [call for call in calls if call[0] != "raises"] == [
            ("list.append", []),
            ("builtins.len", []),
            ("builtins.sorted", [(key, [("leaf", [])])] * 2),
            ("list.index", []),
            ("str.upper", []),
        ]

    @pytest.mark.parametrize(
        "wrong",
        [
            {"depth": 3},
            {"max_depth": 0},
            {"max_depth": "3"},
            {"min_duration_ns": -1},
            {"include": "json"},
            {"exclude": [1]},
        ],
    )
    def test_invalid_options_are_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            install(wrong)

    def test_function_is_recorded_if_the_filter_raises(self) -> None:
        def broken(_code: object, _module: object) -> bool:
            raise RuntimeError

        category = stretto.Category("test.hooks")
        with recorded(category.name) as result:
            _pyhooks.start(category, accepts=broken)
            leaf()
            _pyhooks.stop()
        assert ("leaf", []) in result.calls()

    def test_filter_is_called_once_per_function(self) -> None:
        asked = []

        def accepts(code: Any, module: str | None) -> bool:
            asked.append((code.co_qualname, module))
            return code.co_qualname == "leaf"

        category = stretto.Category("test.hooks")
        with recorded(category.name) as result:
            _pyhooks.start(category, accepts=accepts)
            for _ in range(3):
                leaf()
                catches()
            _pyhooks.stop()
        assert result.calls() == [("leaf", [])] * (3 * 5)
        assert asked.count(("leaf", leaf.__module__)) == 1
        assert len(asked) == len(set(asked))

    def test_invalid_arguments_of_start_are_refused(self) -> None:
        with pytest.raises(TypeError, match=r"stretto\.Category"):
            _pyhooks.start("python.functions")  # type: ignore[arg-type]
        category = stretto.Category("test.hooks")
        with pytest.raises(ValueError, match="max_depth"):
            _pyhooks.start(category, max_depth=0)
        with pytest.raises(TypeError, match="accepts"):
            _pyhooks.start(category, accepts=3)  # type: ignore[arg-type]
        with recorded(CATEGORY), pytest.raises(RuntimeError, match="stop"):
            _pyhooks.start(category)
