"""`python.exceptions`: an exception that nobody caught is an instant, in any thread.

It is seen where it goes to: in `sys.excepthook` and `threading.excepthook`. A program may put a
hook of its own into `sys` that never calls ours: what its main thread died of is looked up at exit.
"""

from __future__ import annotations

import atexit
import sys

import stretto
from stretto.client.track_event import slots
from stretto.profilers.patch import Patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import ExceptHookArgs
    from types import TracebackType

category = stretto.Category("python.exceptions", "uncaught exceptions", ["slow"])


def _type_name(kind: type[BaseException]) -> str:
    module = kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _where(trace: TracebackType | None) -> str:
    """The frames, outermost first, without the `traceback` module.

    Importing that here would run code from strings, upon which the interpreter forgets that
    Ctrl-C is what it has to die of: the exit status would change.
    """
    lines = ["Traceback (most recent call last):"]
    while trace is not None:
        code = trace.tb_frame.f_code
        name = code.co_qualname
        lines.append(f'  File "{code.co_filename}", line {trace.tb_lineno}, in {name}')
        trace = trace.tb_next
    return "\n".join(lines)


def _message(error: BaseException | None) -> str:
    try:
        return str(error)
    except Exception as another:  # noqa: BLE001  # the program's own method
        return f"<{type(another).__name__} in str>"


_seen = 0  # id of the last one


def _on_uncaught(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> None:
    global _seen
    if category.enabled:
        _seen = id(error)
        category.instant(
            "uncaught exception",
            type=_type_name(kind),
            message=_message(error),
            traceback=_where(trace),
        )


def _on_uncaught_in_thread(given: ExceptHookArgs) -> None:
    # A thread that ends by SystemExit ends quietly.
    if given.exc_value is not None and not isinstance(given.exc_value, SystemExit):
        _on_uncaught(given.exc_type, given.exc_value, given.exc_traceback)


def _at_exit() -> None:
    """Python leaves what ended the main thread in `sys`, whoever was told of it."""
    error = getattr(sys, "last_value", None)
    if error is not None and id(error) != _seen and _patches[0].replaced:
        _on_uncaught(type(error), error, error.__traceback__)


_patches: list[Patch] = []


def _switch(on: bool) -> None:
    for patch in _patches:
        patch.switch(on)


def install() -> None:
    """Record uncaught exceptions whenever a session records the category."""
    if not _patches:
        _patches.append(Patch("sys", "excepthook", _on_uncaught))
        _patches.append(Patch("threading", "excepthook", _on_uncaught_in_thread))
        slots.observe(category, _switch)
        atexit.register(_at_exit)
