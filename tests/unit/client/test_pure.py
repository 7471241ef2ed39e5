"""The pure-Python client behaves like the native one; tests/smoke has more of these tests."""

from __future__ import annotations

import inspect

import pytest

import stretto
from stretto.client import pure

CATEGORY = pure.Category("test.pure")


def test_decorator_of_the_pure_module_wraps_functions_like_the_native_decorator():
    def function(a, b=2):
        """Return the sum."""
        return a + b

    for traced in pure.traced(function), CATEGORY.traced(function):
        native = stretto.traced(function)
        assert traced.__wrapped__ is native.__wrapped__ is function
        assert (traced(1), traced.__name__, traced.__doc__) == (3, "function", "Return the sum.")
        assert inspect.signature(traced) == inspect.signature(function)


def test_decorated_generator_is_still_a_generator():
    @CATEGORY.traced
    def numbers():
        yield 1
        return 2

    assert list(numbers()) == [1]
    assert inspect.isgeneratorfunction(inspect.unwrap(numbers))


@pytest.mark.parametrize("side", [pure, stretto])
@pytest.mark.parametrize("name", [5, None, b"x", [], "", "a b"])
def test_invalid_category_names_have_the_same_message_in_native_and_pure_code(side, name):
    error = ValueError if isinstance(name, str) else TypeError
    with pytest.raises(error) as caught:
        side.Category(name)
    with pytest.raises(error) as other:
        stretto.Category(name)
    assert str(caught.value) == str(other.value)


@pytest.mark.parametrize("side", [pure, stretto])
def test_object_that_is_no_function_cannot_be_traced(side):
    with pytest.raises(TypeError, match="traced decorates functions"):
        side.traced(5)
