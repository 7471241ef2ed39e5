"""Calls of functions of the program, which may raise any exception."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class _Unraisable:
    """Reports an exception through `sys.unraisablehook`.

    Only the interpreter can create the hook's argument. It calls the hook for exceptions in
    `__del__`, so this class raises the exception in its `__del__`.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __del__(self) -> None:
        raise self.error


def call_safely(callback: Callable[..., object], *args: object) -> None:
    """Call a function of the program; an exception is reported, and tracing continues."""
    try:
        callback(*args)
    except Exception as error:  # noqa: BLE001  # the program's code may raise anything
        _Unraisable(error)
