"""`python.managers`: generators in `with` statements are slices, in a lane for each thread.

    shop.db.transaction        from the begin of `__enter__` to the end of `__exit__`
      body                     the generator is suspended: the body of the `with` statement runs

Outside of `body` the generator runs.

Context managers may overlap each other and calls of functions, so each has its own track. The
tracks of a thread have the same name, so that the UI shows them as one lane. The lanes are in a
group of the process, because the UI would show a lane of the thread above the thread itself.
Context managers that are shorter than auto detail's threshold are left out, and those above a limit
per second.

Without auto detail nothing is recorded: the begin of a slice may be written long after its time,
and readers of traces with periodic flushes drop events that are much older than those around them.
"""

from __future__ import annotations

from _thread import get_native_id
from itertools import count

import stretto
from stretto import _pyhooks
from stretto.client.track_event import slots
from stretto.client.track_event.process import thread_name
from stretto.profilers import functions
from stretto.profilers.life_lanes import observers
from stretto.profilers.patch import Patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from stretto.profilers.functions import Choice

category = stretto.Category("python.managers", "context managers made of generators", ["slow"])

GROUP = "context managers"
_ids = count(1)


def _code_and_frame(generator: Any) -> tuple[CodeType, Any]:
    kind = "ag" if hasattr(type(generator), "ag_code") else "gi"
    return getattr(generator, f"{kind}_code"), getattr(generator, f"{kind}_frame")


class _Lane:
    """Writes the slices of one context manager."""

    __slots__ = ("_has_body", "_track")

    def __init__(self, name: str, created: int) -> None:
        lane = f"{thread_name()} {get_native_id()}"
        self._track = stretto.Track(lane, parent=stretto.Track(GROUP), id=next(_ids))
        self._has_body = False
        category.begin(name, track=self._track, timestamp=created)

    def look(self, _manager: Any, _looked: int, suspended: int, now: int, resumes: bool) -> None:
        if suspended and not self._has_body:
            self._has_body = True
            category.begin("body", track=self._track, timestamp=suspended)
            if resumes:
                category.end(track=self._track, timestamp=now)

    def end(self, _manager: Any, _looked: int, now: int) -> None:
        category.end(track=self._track, timestamp=now)


_choose: Callable[[CodeType, str | None], Choice] = functions.code_choice()


def _make_lane(manager: Any, created: int) -> _Lane | None:
    """Return a new lane; None if the context manager's function must not be recorded."""
    code, frame = _code_and_frame(manager.gen)
    module = frame.f_globals.get("__name__") if frame is not None else None
    name = _choose(code, module)
    return _Lane(name, created) if isinstance(name, str) else None


def write_pending() -> None:
    """Write the context managers that are open, at the end of a session or of the process."""
    _, over_limit, _ = _pyhooks.look_at_managers()
    if over_limit:
        category.instant("without a slice", track=stretto.Track(GROUP), count=over_limit)


_patches: list[Patch] = []


def _switch(on: bool) -> None:
    global _choose
    on = on and functions.has_auto_detail()
    if on:
        _choose = functions.code_choice()
        _pyhooks.watch_managers(*observers(_make_lane))
    for patch in _patches:
        patch.switch(on)
    if not on:
        _pyhooks.watch_managers(None, None)


def install() -> None:
    """Record context managers while a session records the category."""
    if not _patches:
        enter = _pyhooks.manager_enters, _pyhooks.manager_entered
        leave = _pyhooks.manager_exits, _pyhooks.manager_exited
        for path, observers in (
            ("_GeneratorContextManager.__enter__", enter),
            ("_GeneratorContextManager.__exit__", leave),
            ("_AsyncGeneratorContextManager.__aenter__", enter),
            ("_AsyncGeneratorContextManager.__aexit__", leave),
        ):
            _patches.append(Patch("contextlib", path, *observers))
        slots.observe(category, _switch)
        slots.before_disable.append(write_pending)
