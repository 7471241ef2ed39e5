"""Hooks into the interpreter (native/hooks): function tracing, and observers without frames."""

from collections.abc import Callable
from types import CodeType
from typing import Any, Final, final

from stretto._native import Category, Track

DEFAULT_MAX_DEPTH: Final = 400

def start(
    category: Category,
    *,
    accepts: Callable[[CodeType, str | None], object] | None = None,
    min_duration_ns: int = 0,
    max_depth: int = ...,
    c_functions: bool = False,
) -> bool:
    """Record every call as a slice of the category, on the calling thread's track.

    All threads are followed, those that run already and those to come.

    Args:
        accepts: asked once for each code object, with the name of the module whose code
            runs; None traces everything. What it raises counts as yes.
        min_duration_ns: shorter calls leave nothing.
        max_depth: deeper calls are only counted.
        c_functions: also functions and methods written in C, called from accepted code.

    Returns:
        False in a sub-interpreter, where nothing happens.

    Raises:
        TypeError: an argument is of the wrong type.
        ValueError: `max_depth` is out of range.
        RuntimeError: it runs already, or other tools hold the interpreter's hooks.
    """

def stop() -> None:
    """Stop recording calls. Slices that are open now stay open."""

def running() -> bool:
    """Whether calls are recorded now."""

def stats() -> dict[str, int]:
    """What left no slice since the last start, and why.

    `too_deep`, `too_short`: calls beyond the limits. `unfinished`: calls whose end was never
    seen, closed with their caller. `threads_replaced`, `threads_occupied`: threads that
    could not be followed because the program set a profiler of its own, during or before.
    """

def gc_callback(
    category: Category, thread_track: Callable[[], Track], /
) -> Callable[[str, dict[str, int]], None]:
    """A callable for `gc.callbacks`: each run of the collector is a slice of the category."""

@final
class Around:
    """A function that observers are told of, without a Python frame in between.

    Calling it calls `before(*args, **kwargs)`, then `function`, then `after(token, result)` with
    what the two returned (None for a function that raised), unless the token is None. The
    outcome is the function's; what the observers raise is dropped, but for what a signal handler
    of the program raises in them: that is raised again after the call. It binds like a function and
    has the function's attributes.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        before: Callable[..., Any],
        after: Callable[[Any, Any], object] | None = None,
    ) -> None: ...
    @property
    def __wrapped__(self) -> Callable[..., Any]: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
