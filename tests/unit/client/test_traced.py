"""`traced`: decorated functions behave as before, and each call is a slice."""

from __future__ import annotations

import asyncio
import copy
import functools
import gc
import inspect
import pickle
import sys
import threading
import types
import weakref

import pytest

import stretto
from tests.support.recorded_events import BEGIN, record

CATEGORY = stretto.Category("test.traced")


def nesting(recorded):
    found, depth = [], 0
    for event in recorded.events:
        if event.kind == BEGIN:
            found.append((event.name.rpartition(".")[2], depth))
        depth += {1: 1, 2: -1}.get(event.kind, 0)
        assert depth >= 0
    assert depth == 0, "a slice was left open"
    return found


@CATEGORY.traced
def at_module_level(first, /, second=2, *rest, third: int = 3, **more) -> str:
    """Return all arguments as one text."""
    return f"{first}{second}{rest}{third}{more}"


def test_traced_functions_keep_name_and_signature():
    function = at_module_level
    assert function(1, 5, 6, third=7, x=8) == "15(6,)7{'x': 8}"
    assert (function.__name__, function.__doc__) == (
        "at_module_level",
        "Return all arguments as one text.",
    )
    assert str(inspect.signature(function)).startswith("(first, /, second=2, *rest, third")
    assert function.__wrapped__ is not function
    assert pickle.loads(pickle.dumps(function)) is function
    assert inspect.unwrap(function).__code__.co_name == "at_module_level"
    with pytest.raises(TypeError, match="positional"):
        function(second=2, third=3)


def test_each_call_is_a_slice_named_and_located_by_its_code():
    with record() as recorded:
        at_module_level(1)
        at_module_level(2)
    assert [event.name for event in recorded.events] == ["at_module_level", ""] * 2
    assert recorded.events[0].category == "test.traced"
    assert __file__.encode() in recorded.trace


def test_exceptions_propagate_with_their_traceback():
    @CATEGORY.traced
    def fails():
        raise KeyError("mine")

    with record() as recorded, pytest.raises(KeyError, match="mine") as caught:
        fails()
    assert caught.traceback[-1].name == "fails"
    assert nesting(recorded) == [("fails", 0)]
    assert b"KeyError" in recorded.trace


def test_recursive_calls_are_nested_slices():
    @CATEGORY.traced
    def down(depth):
        return depth and down(depth - 1)

    with record() as recorded:
        down(5)
    assert nesting(recorded) == [("down", depth) for depth in range(6)]


def test_traced_functions_can_be_weakly_referenced_and_bound_as_methods():
    function = at_module_level
    assert inspect.isfunction(function)
    assert weakref.ref(function)() is function
    assert types.MethodType(function, 5)() == function.__get__(5)() == "52()3{}"
    assert copy.deepcopy(function) is function


@pytest.mark.parametrize("on", [False, True])
def test_deep_recursion_of_a_traced_function_needs_no_c_stack(on):
    @CATEGORY.traced
    def down(depth):
        return depth and down(depth - 1)

    depth = 200 if sys.version_info < (3, 12) else 5000
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(4 * depth)
    try:
        with record(enabled=["test.traced"] if on else [], disabled=["*"]) as recorded:
            assert down(depth) == 0
            assert down(1) == 0
    finally:
        sys.setrecursionlimit(limit)
    assert recorded.kinds.count("B") == recorded.kinds.count("E") == on * (depth + 3)


def test_wrapper_with_a_replaced_closure_variable_raises_and_records_nothing():
    @CATEGORY.traced
    def function():
        return 1

    cells = dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))
    cells["function"].cell_contents = len
    with record() as recorded, pytest.raises((AttributeError, TypeError)):
        function()
    assert recorded.events == []


@pytest.mark.parametrize("replaced", ["closure", "code"])
def test_function_is_called_even_if_its_own_event_replaces_it(replaced):
    """The first event of a thread reads the thread's name. Here the name is a property."""

    def make():
        return CATEGORY.traced(lambda: [threading.current_thread().name])

    def empty():
        return None

    class Thread(threading.Thread):
        @property
        def name(self):
            if replaced == "closure":
                cells["function"].cell_contents = empty
            else:
                inner = cells["function"].cell_contents
                inner.__code__ = (lambda: threading.get_ident()).__code__
            gc.collect()
            return "renamed"

        @name.setter
        def name(self, value):
            pass

    function, found = make(), []
    del function.__wrapped__
    cells = dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))
    with record() as recorded:
        thread = Thread(target=lambda: found.append(function()))
        thread.start()
        thread.join()
    assert recorded.kinds.count("B") == recorded.kinds.count("E") == 1
    assert found == [["renamed"] if replaced == "closure" else thread.ident]


@pytest.mark.parametrize("wrong", [5, len, lambda: 1])
def test_native_calls_refuse_a_function_that_traced_did_not_make(wrong):
    with pytest.raises(TypeError, match=r"_call_traced\(function, args, kwargs\)"):
        CATEGORY._call_traced(wrong)
    if sys.version_info >= (3, 12):
        with pytest.raises(TypeError, match="wrapper made by @traced"):
            CATEGORY._trace_calls(wrong)


def test_stretto_traced_uses_the_default_category():
    with record() as recorded:

        @stretto.traced
        def function():
            return 1

        assert function() == 1
    assert recorded.events[0].category == "python"


@CATEGORY.traced
class Everything:
    attribute = 5
    builtin = staticmethod(len)
    partial = functools.partial(int, base=2)

    def method(self):
        return self.helper() + 1

    def helper(self):
        return 1

    @staticmethod
    def static(value):
        return value

    @classmethod
    def make(cls):
        return cls()

    @property
    def prop(self):
        """Return the value that the setter has stored; None before the first call."""
        return getattr(self, "stored", None)

    @prop.setter
    def prop(self, value):
        self.stored = value

    @prop.deleter
    def prop(self):
        del self.stored

    foreign = property(functools.partial(getattr, name="x") if False else len)

    def __len__(self):
        return 3

    def __eq__(self, other):
        return True

    __hash__ = None

    def generate(self):
        yield from (1, 2)

    async def later(self):
        return "later"

    class Inner:
        def method(self):
            return "not traced: a class of its own"


def test_functions_of_a_class_are_traced():
    with record() as recorded:
        made = Everything.make()
        assert made.method() == 2
        assert Everything.static(4) == made.static(4) == 4
        made.prop = 9
        assert made.prop == 9
        del made.prop
        assert made.prop is None
        assert len(made) == made.foreign == 3
        assert made == object()
        assert Everything.builtin("abc") == 3
        assert Everything.partial("11") == 3
        assert list(made.generate()) == [1, 2]
        assert made.Inner().method()
    names = [name for name, _ in nesting(recorded)]
    assert names[:3] == ["make", "method", "helper"]
    assert names.count("static") == 2
    assert names.count("prop") == 4
    assert names.count("__len__") == 2
    assert names.count("__eq__") == 1
    assert names.count("generate") == 3
    assert type(vars(Everything)["static"]) is staticmethod
    assert type(vars(Everything)["make"]) is classmethod
    assert (
        vars(Everything)["prop"].__doc__
        == "Return the value that the setter has stored; None before the first call."
    )
    assert "Inner.method" not in [event.name for event in recorded.events]


def test_methods_called_through_super_are_traced():
    class Base:
        def method(self):
            return ["base"]

    @CATEGORY.traced
    class Derived(Base):
        def __init__(self):
            super().__init__()

        def method(self):
            return ["derived", *super().method()]

    with record() as recorded:
        assert Derived().method() == ["derived", "base"]
    assert nesting(recorded) == [("__init__", 0), ("method", 0)]


def test_traced_property_of_a_subclass_keeps_its_type():
    class Special(property):
        pass

    @CATEGORY.traced
    class Thing:
        value = Special(lambda self: 5, doc="special")

    assert type(vars(Thing)["value"]) is Special
    assert Thing().value == 5


@pytest.mark.parametrize("target", [len, 5, functools.partial(int), "text", [].append, print])
def test_objects_that_cannot_be_traced_are_refused(target):
    with pytest.raises(TypeError, match="traced decorates functions, methods and classes"):
        CATEGORY.traced(target)


def conversation():
    """A generator that yields, receives values, catches exceptions and returns."""
    received = []
    while True:
        try:
            value = yield len(received)
        except ValueError as error:
            received.append(f"caught {error}")
        except GeneratorExit:
            received.append("closed")
            raise
        else:
            if value == "return":
                return received
            received.append(value)


@pytest.mark.parametrize("on", [False, True])
def test_traced_generators_pass_values_and_exceptions(on):
    traced = CATEGORY.traced(conversation)
    assert inspect.isgeneratorfunction(traced)
    with record(enabled=["test.traced"] if on else [], disabled=["*"]) as recorded:
        generator = traced()
        assert next(generator) == 0
        assert generator.send("a") == 1
        assert generator.throw(ValueError("b")) == 2
        with pytest.raises(StopIteration) as stop:
            generator.send("return")
        assert stop.value.value == ["a", "caught b"]
        with pytest.raises(StopIteration):
            next(generator)
        begun = traced()
        next(begun)
        with pytest.raises(KeyError):
            begun.throw(KeyError())
    assert nesting(recorded) == ([("conversation", 0)] * 6 if on else [])


def test_slice_of_a_generator_covers_only_its_execution():
    @CATEGORY.traced
    def numbers():
        for number in range(3):
            CATEGORY.instant("inside")
            yield number

    with record() as recorded:
        for _ in numbers():
            CATEGORY.instant("outside")
    depth, depths = 0, {"inside": set(), "outside": set()}
    for event in recorded.events:
        depth += {1: 1, 2: -1}.get(event.kind, 0)
        if event.name in depths:
            depths[event.name].add(depth)
    assert depths == {"inside": {1}, "outside": {0}}


@pytest.mark.parametrize("wrap", [lambda function: function, CATEGORY.traced])
def test_closing_a_traced_generator_closes_the_inner_generator(wrap):
    log = []

    @wrap
    def plain():
        try:
            yield 1
        finally:
            log.append("closed")

    @wrap
    def returns():
        try:
            yield 1
        except GeneratorExit:
            return 5

    @wrap
    def refuses():
        for _ in range(3):
            try:
                yield 1
            except GeneratorExit:
                pass

    @wrap
    def fails():
        try:
            yield 1
        finally:
            raise KeyError

    with record():
        for function in plain, returns, refuses, fails:
            function().close()  # The body of a generator that was not started doesn't run.
        assert log == []
        generator = plain()
        next(generator)
        assert generator.close() is None
        assert log == ["closed"]
        generator = returns()
        next(generator)
        assert generator.close() == (5 if sys.version_info >= (3, 13) else None)
        generator = refuses()
        next(generator)
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            generator.close()
        assert list(generator) == [1]
        generator = refuses()
        next(generator)
        assert generator.throw(GeneratorExit) == 1
        assert generator.throw(GeneratorExit) == 1
        assert next(generator, "end") == "end"
        generator = fails()
        next(generator)
        with pytest.raises(KeyError):
            generator.close()


def test_yield_from_a_traced_generator_passes_values_and_nests_slices():
    @CATEGORY.traced
    def inner():
        received = yield 1
        return received

    @CATEGORY.traced
    def outer():
        return (yield from inner())

    with record() as recorded:
        generator = outer()
        next(generator)
        with pytest.raises(StopIteration) as stop:
            generator.send("x")
    assert stop.value.value == "x"
    assert nesting(recorded) == [("outer", 0), ("inner", 1)] * 2


def test_traced_generator_coroutines_can_be_awaited():
    @CATEGORY.traced
    @types.coroutine
    def old_style():
        yield
        return 5

    async def main():
        return await old_style()

    coroutine = main()
    with record():
        assert coroutine.send(None) is None
        with pytest.raises(StopIteration) as stop:
            coroutine.send(None)
    assert stop.value.value == 5


def test_traced_coroutines_are_slices():
    @CATEGORY.traced
    async def answer(value):
        await asyncio.sleep(0)
        if value is None:
            raise KeyError
        return value

    async def main():
        with pytest.raises(KeyError):
            await answer(None)
        return await asyncio.gather(answer(1), answer(2))

    assert inspect.iscoroutinefunction(answer)
    assert asyncio.run(main()) == [1, 2]
    with record() as recorded:
        assert asyncio.run(main()) == [1, 2]
    by_track = {}
    for event in recorded.events:
        by_track.setdefault(event.track, []).append(event.kind)
    assert list(by_track.values()) == [[1, 2]] * 3


@pytest.mark.parametrize("wrap", [lambda function: function, CATEGORY.traced])
def test_traced_asynchronous_generators_pass_values_and_exceptions(wrap):
    log = []

    @wrap
    async def exchange():
        try:
            while True:
                try:
                    log.append((yield len(log)))
                except ValueError as error:
                    log.append(str(error))
                await asyncio.sleep(0)
                if log[-1] == "stop":
                    return
        finally:
            await asyncio.sleep(0)
            log.append("closed")

    async def main():
        assert inspect.isasyncgenfunction(exchange)
        generator = exchange()
        assert await anext(generator) == 0
        assert await generator.asend("a") == 1
        assert await generator.athrow(ValueError("b")) == 2
        await generator.aclose()
        assert log == ["a", "b", "closed"]
        with pytest.raises(StopAsyncIteration):
            await anext(generator)
        await exchange().aclose()
        generator = exchange()
        await anext(generator)
        with pytest.raises(StopAsyncIteration):
            await generator.asend("stop")
        generator = exchange()
        await anext(generator)
        with pytest.raises(KeyError):
            await generator.athrow(KeyError())

    with record() as recorded:
        asyncio.run(main())
    assert recorded.kinds.count("B") == recorded.kinds.count("E")


def test_unfinished_asynchronous_generator_is_closed_by_the_loop():
    log = []

    @CATEGORY.traced
    async def numbers():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    async def main():
        async for _ in numbers():
            break

    with record() as recorded:
        asyncio.run(main())
    assert log == ["closed"]
    assert recorded.kinds.count("B") == recorded.kinds.count("E")
