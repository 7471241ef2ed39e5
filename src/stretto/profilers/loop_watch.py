"""`python.loops`: how late event loops of asyncio are, and what blocked them.

    event loop lag (ms)     a counter for each loop: ▁▁▁█▁▁  as high as its busy time is long
    event loop              a track below the loop's thread
      blocked in shop.checkout     from the begin of the callback to its end

The loop is busy from the first callback of an iteration to the end of the last one. What becomes
ready at its beginning waits that long: that is the lag. A callback that takes `LIMIT_NS`, or a
task's step, is a slice. Its argument `stack` are the calls 100 to 120 ms after its begin, innermost
first, which a native thread reads while it runs. Code that keeps the GIL for the whole time has no
stack. The slice begins in the trace while the loop is blocked: one that never ends is there, too.

Nothing is added to the loop: no timer, no task. Loops of uvloop have no lag, and their blocked
steps are found only while tasks are recorded.
"""

from __future__ import annotations

import sys

import stretto
from stretto import _pyhooks
from stretto.base.installed_code import is_own_function
from stretto.client import fork
from stretto.client.track_event import slots
from stretto.profilers.code_names import code_name
from stretto.profilers.patch import Patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

LIMIT_NS = 100_000_000
"""asyncio's own limit for a slow callback: `slow_callback_duration` in the debug mode of a loop."""

_MAX_FRAMES = 64

category = stretto.Category("python.loops", "lag of event loops, and what blocked them", ["slow"])
_tracks: dict[int, stretto.Track] = {}
"""The track of each thread's loop, by the thread's `get_ident()`."""
_patches: list[Patch] = []


class _Call:
    """A call on the stack of a blocked loop."""

    def __init__(self, frame: FrameType) -> None:
        code: CodeType = frame.f_code
        self.name = code_name(code, frame.f_globals.get("__name__"))
        self.is_own = is_own_function(self.name, code.co_filename)
        self.text = f"{self.name} ({code.co_filename}:{frame.f_lineno})"
        self.is_loop = code.co_qualname == "Handle._run"


def _calls(thread: int) -> list[_Call]:
    """Return the calls of a thread's callback, innermost first."""
    calls: list[_Call] = []
    frame = sys._current_frames().get(thread)  # noqa: SLF001  # documented for CPython
    while frame is not None and len(calls) < _MAX_FRAMES:
        call = _Call(frame)
        if call.is_loop:
            break
        calls.append(call)
        frame = frame.f_back
    return calls


def _callback_name(handle: Any) -> str:
    callback = handle._callback  # noqa: SLF001
    task: Any = getattr(callback, "__self__", None)
    named = task.get_coro() if hasattr(task, "get_coro") else callback
    return str(getattr(named, "__qualname__", None) or type(named).__qualname__)


def _on_loop(thread: int) -> None:
    _tracks[thread] = stretto.Track("event loop", parent=stretto.thread_track())


def _begin(thread: int, begin: int, handle: Any, calls: list[_Call]) -> None:
    callback = _callback_name(handle)
    own = [call.name for call in calls if call.is_own]
    where = own[0] if own else callback
    arguments: dict[str, Any] = {"callback": callback}
    if calls:
        arguments["stack"] = [call.text for call in calls]
    category.begin(
        f"blocked in {where}", track=_tracks.get(thread), timestamp=begin, args=arguments
    )


def _on_blocked(thread: int, begin: int, handle: Any) -> None:
    if category.enabled:
        _begin(thread, begin, handle, _calls(thread))


def _on_end(thread: int, begin: int, end: int, handle: Any, reported: bool) -> None:
    if not reported:
        _begin(thread, begin, handle, [])
    category.end(track=_tracks.get(thread), timestamp=end)


def _on_lag(first: int, last: int) -> None:
    if category.enabled:
        track = _tracks.get(_get_ident())
        lag_ms = (last - first) / 1e6
        for value, timestamp in ((lag_ms, first), (0.0, last)):
            category.counter("event loop lag", value, unit="ms", track=track, timestamp=timestamp)


def _get_ident() -> int:
    import _thread

    return _thread.get_ident()


def _switch(on: bool) -> None:
    if on:
        _pyhooks.watch_loops(LIMIT_NS, _on_loop, _on_blocked, _on_end, _on_lag)
    for patch in _patches:
        patch.switch(on)
    if not on:
        _pyhooks.unwatch_loops()


def install() -> None:
    """Watch event loops while a session records the category."""
    if not _patches:
        callbacks = _pyhooks.loop_callback_begins, _pyhooks.loop_callback_ended
        iterations = _pyhooks.loop_iteration_begins, _pyhooks.loop_iteration_ended
        _patches.append(Patch("asyncio.events", "Handle._run", *callbacks))
        _patches.append(Patch("asyncio.base_events", "BaseEventLoop._run_once", *iterations))
        fork.before.append(_pyhooks.pause_loop_watch)
        fork.after_in_parent.append(_pyhooks.resume_loop_watch)
        fork.when_connected.append(_pyhooks.resume_loop_watch)
        slots.observe(category, _switch)
