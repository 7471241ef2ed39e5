"""Keeps the frames of wrappers out of the program's tracebacks."""

from __future__ import annotations

from functools import wraps
from inspect import iscoroutinefunction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = __name__.rpartition(".")[0] + "."


def without_own_frames(function: F) -> F:
    """Return a function that does the same, without frames of this package in tracebacks.

    Args:
        function: a function of this package that calls one of the program, or such a coroutine
            function.
    """

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            _drop_own_frames(error)
            raise  # Without an expression, it adds no entry to the traceback.

    @wraps(function)
    async def run_async(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except BaseException as error:
            _drop_own_frames(error)
            raise

    return run_async if iscoroutinefunction(function) else run  # type: ignore[return-value]


def _drop_own_frames(error: BaseException) -> None:
    """Remove the outermost frames of the traceback that belong to this package, unless all do."""
    traceback = error.__traceback__
    while traceback is not None and _is_own(traceback.tb_frame.f_globals.get("__name__")):
        traceback = traceback.tb_next
    if traceback is not None:
        error.__traceback__ = traceback


def _is_own(module: object) -> bool:
    return isinstance(module, str) and module.startswith(_PACKAGE)
