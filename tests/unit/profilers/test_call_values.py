"""Arguments and results of recorded calls: bounds, secrets, objects whose methods are hostile."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import stretto
from stretto.profilers import problems
from stretto.profilers.call_values import (
    HIDDEN,
    MAX_ARGUMENTS,
    MAX_TEXT,
    arguments_of,
    result_of,
)
from tests.support.call_programs import PROGRAMS, leaf
from tests.support.call_slices import END, Call, expected_calls, recorded

CATEGORY = "python.functions"
needs_312 = pytest.mark.skipif(sys.version_info < (3, 12), reason="needs CPython 3.12")


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise AssertionError(name)


class Hostile(metaclass=Meta):
    """Raises in each method that a description might call."""

    def _fail(self, *_: object) -> Any:
        raise AssertionError

    __getattribute__ = __repr__ = __str__ = __len__ = __iter__ = __format__ = __bool__ = _fail


HOSTILE = f"<{__name__}.Hostile>"


def described(value: object) -> object:
    return result_of(described.__code__, value)["result"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, 7),
        (-(1 << 62), -(1 << 62)),
        (1 << 64, str(1 << 64)),
        (1 << 10_000, "<int of 10001 bits>"),
        (1.5, 1.5),
        (True, True),
        (None, "None"),
        ("book", "book"),
        (b"\0", "b'\\x00'"),
        ([1, "a", None], "[1, 'a', None]"),
        ((), "()"),
        ({1: {2: {3: 4}}}, "{1: {2: <dict>}}"),
        ({3}, "{3}"),
        (range(3), "<range>"),
        (OrderedDict(), "<collections.OrderedDict>"),
        (int, "<type>"),
        (list(range(9)), "[0, 1, 2, 3, 4, 5, …]"),
        ({"user": "ada", "api_key": "s3"}, f"{{'user': 'ada', 'api_key': {HIDDEN}}}"),
    ],
)
def test_only_exact_builtin_values_are_shown_by_value(value: object, text: object) -> None:
    assert described(value) == text


def test_no_method_or_property_of_an_object_is_called() -> None:
    assert described(Hostile()) == HOSTILE
    assert described([{"a": Hostile()}]) == f"[{{'a': {HOSTILE}}}]"


def test_text_of_a_value_has_a_largest_length() -> None:
    huge: list[object] = ["x" * 10**6] * 10**5
    huge.append(huge)
    for value in (huge, "x" * 10**6, b"x" * 10**6, {"a" * 999: huge}, "\ud800" * 999):
        text = described(value)
        assert isinstance(text, str)
        assert len(text) == MAX_TEXT
        assert text.endswith("…")


@pytest.mark.parametrize("name", ["password", "API_KEY", "accessToken", "client_secret", "pwd"])
def test_values_whose_names_sound_like_secrets_are_left_out(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def get_{name}({name}, user): pass", scope)
    code = scope[f"get_{name}"].__code__
    assert arguments_of(code, ("s3", "ada")) == {name: HIDDEN, "user": "ada"}
    assert result_of(code, "s3") == {"result": HIDDEN}


def test_arguments_are_limited_and_self_is_left_out() -> None:
    scope: dict[str, Any] = {}
    exec(f"def method(self, {', '.join(f'a{n}' for n in range(30))}): pass", scope)
    found = arguments_of(scope["method"].__code__, (Hostile(), *range(30)))
    assert list(found.items()) == [(f"a{n}", n) for n in range(MAX_ARGUMENTS)]


@needs_312
class TestRecordedCalls:
    @pytest.fixture(autouse=True)
    def options(self, function_options: Callable[..., None]) -> Callable[..., None]:
        function_options(log_args=True, log_result=True)
        return function_options

    @pytest.mark.parametrize("program", PROGRAMS)
    def test_slices_equal_the_calls_that_a_profiler_records(
        self, program: Callable[[], object]
    ) -> None:
        with recorded(CATEGORY) as result:
            program()
        assert result.calls() == expected_calls(program)

    def test_slices_have_arguments_and_results(self) -> None:
        def buy(item: str, /, count: int, *more: int, password: str, **rest: object) -> object:
            def inner() -> object:  # makes `item` a cell variable
                return item, more

            del count
            return inner

        with recorded(CATEGORY) as result:
            buy("book", 2, 3, password="s3", other=Hostile())
        begin, end = result.events
        assert begin.args == {
            "item": "book", "count": 2, "more": "(3)", "password": HIDDEN,
            "rest": f"{{'other': {HOSTILE}}}",
        }  # fmt: skip
        assert (end.type, end.args) == (END, {"result": "<function>"})

    def test_late_begin_of_a_long_call_has_arguments(self, options: Callable[..., None]) -> None:
        options(log_args=True, min_duration_ns=2_000_000)

        def spin(until: int) -> None:
            while stretto.now() < until:
                pass

        with recorded(CATEGORY) as result:
            leaf()
            until = stretto.now() + 3_000_000
            spin(until)
        assert [event.args for event in result.events] == [{"until": until}, {}]

    def test_recorded_arguments_are_not_kept_alive(self) -> None:
        def take(value: list[object]) -> int:
            return sys.getrefcount(value)

        without = take([])
        with recorded(CATEGORY):
            within = take([])
        assert within == without


def test_values_of_calls_are_refused_on_older_versions_and_with_auto_detail(
    function_options: Callable[..., None],
) -> None:
    function_options(log_args=True, auto_detail=True)
    calls: list[Call] = []
    with recorded(CATEGORY) as result:
        leaf()
    assert result.calls() == calls
    assert "arguments and results" in problems()[0] or sys.version_info < (3, 12)
