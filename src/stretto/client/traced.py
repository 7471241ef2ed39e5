"""`@category.traced`: every call becomes a slice.

The decorator accepts functions, methods, static and class methods, generators, coroutines,
asynchronous generators, and classes (all functions defined in a class). The slice is named by the
code's qualified name, and has its file and line as arguments. While the category is disabled, a
call costs one test of the category.

A generator has a slice for each of its runs, from resumption to the next `yield`: while it is
suspended, other work takes place on the thread. A coroutine has one slice from its start to its
end. This slice is on the task's own track, where slices of other tasks can't interfere.

Function tracing (`stretto record`) leaves out calls that the decorator records. But it does record
the steps of a coroutine, as slices on the thread's track.

The module is also used without the native part. Then categories are never enabled, and decorated
functions behave the same.
"""

from __future__ import annotations

from functools import update_wrapper
from sys import version_info
from types import FunctionType, coroutine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from stretto._native import Category

    T = TypeVar("T")

_CO_GENERATOR, _CO_COROUTINE, _CO_ITERABLE_COROUTINE, _CO_ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200


def _wrap_function(category: Category, function: Callable[..., Any]) -> Any:
    """Return the wrapper of a plain function.

    From CPython 3.12 on, native code reads the free variables of `traced`, and does what the body
    of `traced` would do. The body is executed only if calls are nested deeply. CPython 3.11 always
    executes the body of `traced_by_call`.
    """

    def traced(*args: Any, **kwargs: Any) -> Any:
        if not category.enabled:
            return function(*args, **kwargs)
        with category._slice_for_code(function.__code__):
            return function(*args, **kwargs)

    def traced_by_call(*args: Any, **kwargs: Any) -> Any:
        return category._call_traced(function, args, kwargs)

    return category._trace_calls(traced if version_info >= (3, 12) else traced_by_call)


def _wrap_coroutine(category: Category, function: Callable[..., Any]) -> Any:
    code = function.__code__
    slice_for_code = category._slice_for_code

    async def traced(*args: Any, **kwargs: Any) -> Any:
        with slice_for_code(code):
            return await function(*args, **kwargs)

    return traced


def _resume(category: Category, code: Any, step: Callable[..., Any], *args: Any) -> Any:
    with category._slice_for_code(code):
        return step(*args)


def _wrap_generator(category: Category, function: Callable[..., Any]) -> Any:
    code = function.__code__

    def traced(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step, argument = generator.send, None
        while True:
            try:
                value = _resume(category, code, step, argument)
            except StopIteration as stop:
                return stop.value
            try:
                argument = yield value
                step = generator.send
            except BaseException as error:  # noqa: BLE001  # belongs to the generator
                step, argument = generator.throw, error

    return traced


def _wrap_async_generator(category: Category, function: Callable[..., Any]) -> Any:
    code = function.__code__
    slice_for_code = category._slice_for_code

    async def traced(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step, argument = generator.asend, None
        while True:
            try:
                with slice_for_code(code):
                    value = await step(argument)
            except StopAsyncIteration:
                return
            try:
                argument = yield value
                step = generator.asend
            except BaseException as error:  # noqa: BLE001  # belongs to the generator
                step, argument = generator.athrow, error

    return traced


def _trace_function(category: Category, function: Any) -> Any:
    flags = function.__code__.co_flags
    if flags & _CO_COROUTINE:
        wrapper = _wrap_coroutine(category, function)
    elif flags & _CO_ASYNC_GENERATOR:
        wrapper = _wrap_async_generator(category, function)
    elif flags & _CO_GENERATOR:
        wrapper = _wrap_generator(category, function)
        if flags & _CO_ITERABLE_COROUTINE:
            wrapper = coroutine(wrapper)  # `@types.coroutine` makes an awaitable generator.
    else:
        wrapper = _wrap_function(category, function)
    return update_wrapper(wrapper, function)


def _trace_class(category: Category, cls: type) -> type:
    for name, attribute in list(vars(cls).items()):
        if _is_traceable(attribute):
            setattr(cls, name, trace(category, attribute))
    return cls


def _is_traceable(attribute: object) -> bool:
    """Whether an attribute of a class is a Python function, or a descriptor that wraps one."""
    if isinstance(attribute, (staticmethod, classmethod)):
        return isinstance(attribute.__func__, FunctionType)
    return isinstance(attribute, (FunctionType, property))


def _trace_property(category: Category, prop: property) -> property:
    if isinstance(prop.fget, FunctionType):
        prop = prop.getter(trace(category, prop.fget))
    if isinstance(prop.fset, FunctionType):
        prop = prop.setter(trace(category, prop.fset))
    if isinstance(prop.fdel, FunctionType):
        prop = prop.deleter(trace(category, prop.fdel))
    return prop


def trace(category: Category, target: T) -> T:
    """Return `target` with its calls recorded in `category`.

    Args:
        target: a function, method descriptor or class (changed in place).

    Raises:
        TypeError: `target` is none of these.
    """
    traced: Any
    if isinstance(target, type):
        traced = _trace_class(category, target)
    elif isinstance(target, (staticmethod, classmethod)):
        traced = type(target)(trace(category, target.__func__))
    elif isinstance(target, property):
        traced = _trace_property(category, target)
    elif isinstance(target, FunctionType):
        traced = _trace_function(category, target)
    else:
        raise _not_traceable(target)
    return traced  # type: ignore[no-any-return]  # of the same kind as target


def _not_traceable(target: object) -> TypeError:
    message = f"traced decorates functions, methods and classes written in Python, not {target!r}"
    return TypeError(message)
