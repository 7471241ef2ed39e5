"""`__enter__` and `__exit__` of native types behave like ordinary methods."""

from __future__ import annotations

import contextlib

import pytest

import stretto
from stretto import _native
from tests.support.recorded_events import record

CATEGORY = stretto.Category("test.with_methods")

OBJECTS = {
    "slice": lambda: CATEGORY.slice("name"),
    "empty slice": lambda: CATEGORY._empty_slice("name"),
    "message writer": _native.MessageWriter,
}
with_each_type = pytest.mark.parametrize("make", OBJECTS.values(), ids=OBJECTS)


class Writer(_native.MessageWriter):
    """A subclass that calls the methods of its base class."""

    def __enter__(self):
        assert super().__enter__() is self
        return "entered"

    def __exit__(self, *details):
        super().__exit__(*details)


@with_each_type
def test_bound_method_has_the_attributes_of_an_ordinary_method(make):
    manager = make()
    enter, leave = manager.__enter__, manager.__exit__
    assert [enter.__name__, leave.__name__] == ["__enter__", "__exit__"]
    assert enter.__self__ is leave.__self__ is manager
    assert enter.__doc__ == type(manager).__enter__.__doc__
    with pytest.raises(AttributeError):
        _ = enter.missing


@with_each_type
def test_method_of_the_class_takes_the_object(make):
    manager = make()
    with record():
        assert type(manager).__enter__(manager) is manager
        type(manager).__exit__(manager, None, None, None)
        with contextlib.ExitStack() as stack:
            assert stack.enter_context(manager) is manager


@with_each_type
def test_wrong_arguments_raise_type_error(make):
    manager = make()
    with pytest.raises(TypeError, match="__enter__"):
        manager.__enter__(1)
    with pytest.raises(TypeError, match="__exit__"):
        manager.__exit__(type=None)


@with_each_type
def test_method_is_not_bound_to_an_object_of_another_type(make):
    for name in ("__enter__", "__exit__"):
        with pytest.raises(TypeError):
            vars(type(make()))[name].__get__(5)


def test_bound_methods_keep_their_objects_alive():
    """There are more of them than the free list can hold."""
    with record() as recorded:
        slices = [(s.__enter__, s.__exit__) for s in map(CATEGORY.slice, map(str, range(100)))]
        for enter, _ in slices:
            enter()
        for _, leave in reversed(slices):
            leave(None, None, None)
    assert [event.name for event in recorded.events[:100]] == [str(n) for n in range(100)]
    assert recorded.kinds == "B" * 100 + "E" * 100


def test_methods_of_a_subclass_can_call_those_of_the_base_class():
    with Writer() as entered:
        assert entered == "entered"
