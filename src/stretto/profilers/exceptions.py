"""`python.exceptions`: an uncaught exception is an instant, in any thread.

The instant is named after the exception (`KeyError: 'qty'`), and is a log message of the priority
FATAL. The priority is WARN if the program itself has called `sys.excepthook`, and if a
`concurrent.futures.Future`, a result of a `multiprocessing.Pool` or an asyncio task keeps the
exception, which the program may never retrieve; then the argument `kept_by` is added. An asyncio
future's exception is recorded when the future is destroyed, if it was never retrieved; that of an
event loop's callback when the callback fails. The priority is WARN, too, if the interpreter ignores
the exception, as that of a `__del__`; then the argument `ignored_in` names the function.

An uncaught exception is recorded in `sys.excepthook` and `threading.excepthook`, and that of a
`multiprocessing.Process` when that prints it. If the program has set a
`sys.excepthook` that doesn't call ours, the uncaught exception of the main thread is recorded at
exit.
"""

from __future__ import annotations

import atexit
import sys

import stretto
from stretto import _native
from stretto.client.track_event import slots
from stretto.profilers.exception_text import (
    event_name,
    location_of,
    message_of,
    traceback_of,
    type_name,
)
from stretto.profilers.patch import Patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from threading import ExceptHookArgs
    from types import TracebackType

category = stretto.Category("python.exceptions", "uncaught exceptions", ["slow"])


_seen: tuple[object, ...] = ()  # The key of the last recorded exception.
_kept: tuple[str, int] = ("", 0)  # What kept that exception; the length of its traceback then.


WARN, FATAL = 5, 7  # Priorities of Android's log.


def _record(
    kind: type[BaseException],
    error: BaseException | None,
    trace: TracebackType | None,
    priority: int = FATAL,
    **arguments: object,
) -> None:
    global _seen, _kept
    if "ignored_in" not in arguments:  # An ignored exception is seen nowhere else.
        _seen = _key(error)
        _kept = str(arguments.get("kept_by", "")), _length(trace)
    message = message_of(error)
    text = f"{type_name(kind)}: {message}" if message else type_name(kind)
    category.log_message(
        event_name(text),
        text,
        priority,
        *location_of(trace),
        args={
            "type": type_name(kind),
            "message": message,
            "traceback": traceback_of(error, trace),
            **arguments,
        },
    )


def _on_uncaught(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> None:
    if category.enabled:
        # Otherwise the program has called the hook, for an exception that it handles.
        uncaught = getattr(sys, "last_value", None) is error
        _record(kind, error, trace, FATAL if uncaught else WARN)


def _key(error: BaseException | None) -> tuple[object, ...]:
    return id(error), type(error), message_of(error)


def _length(trace: TracebackType | None) -> int:
    count = 0
    while trace is not None:
        trace = trace.tb_next
        count += 1
    return count


def _is_recorded(error: BaseException, kept_by: str) -> bool:
    """Whether this is the last recorded exception, on its way through tasks and futures.

    An equal key isn't enough: the recorded exception may have been freed, and a new one may have
    its id. (A reference would prevent this, but would keep the program's objects alive.) So the
    exception must also be kept by something else now, or must have passed through more frames.
    """
    keeper, length = _kept
    return _key(error) == _seen and (kept_by != keeper or _length(error.__traceback__) > length)


def on_kept(error: object, kept_by: str) -> None:
    """Record an exception that was stored instead of raised, unless it is recorded already."""
    if isinstance(error, Exception) and category.enabled and not _is_recorded(error, kept_by):
        _record(type(error), error, error.__traceback__, WARN, kept_by=kept_by)


def _on_future(_future: object, error: object = None) -> None:
    on_kept(error, "future")


def _on_loop_error(_loop: object, context: dict[str, object]) -> None:
    """Handle a call of an event loop's exception handler."""
    from stretto.profilers import task_lanes  # Most programs have no event loop.

    future = context.get("future", context.get("task"))
    if task_lanes.is_task(future):
        # If it is enabled, exceptions of tasks are recorded when they end.
        if not task_lanes.category.enabled:
            on_kept(context.get("exception"), "task")
    else:
        on_kept(context.get("exception"), "callback" if future is None else "future")


def _on_uncaught_in_thread(given: ExceptHookArgs) -> None:
    # SystemExit in a thread isn't an error.
    error = given.exc_value
    if category.enabled and error is not None and not isinstance(error, SystemExit):
        _record(given.exc_type, error, given.exc_traceback)


def _on_process_end(*_arguments: object, **_named: object) -> None:
    """Record the exception that ends a process of `multiprocessing`, which prints it.

    A child of a fork also has the exception that its parent handles. The traceback of that one
    doesn't begin in the caller, which is `BaseProcess._bootstrap`.
    """
    caller = sys._getframe(1)  # noqa: SLF001
    if not category.enabled or caller.f_code.co_name != "_bootstrap":
        return
    kind, error, trace = sys.exc_info()
    if kind is not None and trace is not None and trace.tb_frame is caller:
        _record(kind, error, trace)


def _on_pool_result(_result: object, _index: object, outcome: tuple[bool, object]) -> None:
    successful, value = outcome
    if not successful:
        on_kept(value, "pool")


def _function_of(given: UnraisableHookArgs) -> str:
    """Return the name of the function whose exception the interpreter ignores."""
    where = given.object
    if where is None and given.exc_traceback is not None:  # For destructors, from 3.14 on.
        return given.exc_traceback.tb_frame.f_code.co_qualname
    return getattr(where, "__qualname__", None) or type(where).__qualname__


def _on_ignored(given: UnraisableHookArgs) -> None:
    error = given.exc_value
    if category.enabled and error is not None:
        name = _function_of(given)
        _record(given.exc_type, error, given.exc_traceback, WARN, ignored_in=name)


def _at_exit(error: BaseException) -> None:
    """Record the main thread's uncaught exception, if our hook was replaced."""
    if _key(error) != _seen and _patches[0].replaced:
        _on_uncaught(type(error), error, error.__traceback__)


_patches: list[Patch] = []


def _switch(on: bool) -> None:
    global _seen
    for patch in _patches:
        patch.switch(on)
    if on:
        _seen = ()  # The next session has not recorded it.
        atexit.register(_native.call_with_last_error, _at_exit)
    else:
        atexit.unregister(_native.call_with_last_error)


def install() -> None:
    """Record uncaught exceptions while a session records the category."""
    if not _patches:
        _patches.append(Patch("sys", "excepthook", _on_uncaught))
        _patches.append(Patch("threading", "excepthook", _on_uncaught_in_thread))
        _patches.append(Patch("sys", "unraisablehook", _on_ignored))
        _patches.append(Patch("traceback", "print_exc", _on_process_end))
        _patches.extend(
            Patch("multiprocessing.pool", f"{result}._set", _on_pool_result)
            for result in ("ApplyResult", "MapResult", "IMapIterator", "IMapUnorderedIterator")
        )
        _patches.append(Patch("concurrent.futures._base", "Future.set_exception", _on_future))
        handler = "call_exception_handler"
        _patches.append(Patch("asyncio.base_events", f"BaseEventLoop.{handler}", _on_loop_error))
        _patches.append(Patch("uvloop", f"Loop.{handler}", _on_loop_error))
        slots.observe(category, _switch)
