"""`python.exceptions`: an exception that nobody caught is an instant, in any thread."""

from __future__ import annotations

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


def _on_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if category.enabled:
        category.instant(
            "uncaught exception",
            type=_type_name(kind),
            message=str(error),
            traceback=_where(trace),
        )


def _on_uncaught_in_thread(given: ExceptHookArgs) -> None:
    # A thread that ends by SystemExit ends quietly.
    if given.exc_value is not None and not isinstance(given.exc_value, SystemExit):
        _on_uncaught(given.exc_type, given.exc_value, given.exc_traceback)


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
