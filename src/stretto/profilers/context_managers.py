"""Generators used as context managers are slices from enter to exit, below the thread's track.

    shop.db.transaction        from the begin of `__enter__` to the end of `__exit__`
      body                     the generator is suspended: the body of the `with` statement runs

Outside of `body` the generator runs. Context managers overlap calls, and each other, in any way, so
each has its own track; these tracks have one name, so that readers show them as one lane. As with
auto detail, those shorter than the threshold, and those over a limit per second, are left out.
"""

from __future__ import annotations

from itertools import count

import stretto
from stretto import _pyhooks
from stretto.profilers.patch import Patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    Choice = Callable[[CodeType, str | None], str | tuple[str] | None]

LANE = "context managers"
_ids = count(1)


def _code_and_frame(generator: Any) -> tuple[CodeType, Any]:
    kind = "ag" if hasattr(type(generator), "ag_code") else "gi"
    return getattr(generator, f"{kind}_code"), getattr(generator, f"{kind}_frame")


class _Lane:
    """Writes the slices of one context manager."""

    __slots__ = ("_category", "_has_body", "_track")

    def __init__(self, category: stretto.Category, name: str, created: int) -> None:
        self._category = category
        self._track = stretto.Track(LANE, parent=stretto.thread_track(), id=next(_ids))
        self._has_body = False
        category.begin(name, track=self._track, timestamp=created)

    def look(self, suspended: int, now: int, resumes: bool) -> None:
        if suspended and not self._has_body:
            self._has_body = True
            self._category.begin("body", track=self._track, timestamp=suspended)
            if resumes:
                self._category.end(track=self._track, timestamp=now)

    def end(self, now: int) -> None:
        self._category.end(track=self._track, timestamp=now)


class ContextManagers:
    """Records context managers while a session records the category."""

    def __init__(self, category: stretto.Category) -> None:
        self._category = category
        self._choose: Choice | None = None
        enter = _pyhooks.manager_enters, _pyhooks.manager_entered
        leave = _pyhooks.manager_exits, _pyhooks.manager_exited
        self._patches = [
            Patch("contextlib", "_GeneratorContextManager.__enter__", *enter),
            Patch("contextlib", "_GeneratorContextManager.__exit__", *leave),
            Patch("contextlib", "_AsyncGeneratorContextManager.__aenter__", *enter),
            Patch("contextlib", "_AsyncGeneratorContextManager.__aexit__", *leave),
        ]

    def switch(self, choose: Choice | None) -> None:
        """Start recording, or stop.

        Args:
            choose: returns the name of a code object's slices, and no string if it has none; None
                stops the recording.
        """
        self._choose = choose
        if choose is not None:
            _pyhooks.watch_managers(self._look, self._end)
        for patch in self._patches:
            patch.switch(choose is not None)
        if choose is None:
            _pyhooks.watch_managers(None, None)

    def write_pending(self) -> None:
        """Write the context managers that are open, at the end of a session or of the process."""
        _, over_limit = _pyhooks.look_at_managers()
        if over_limit:
            self._category.instant("without a slice", track=stretto.Track(LANE), count=over_limit)

    def _make_lane(self, manager: Any, created: int) -> _Lane | bool:
        code, frame = _code_and_frame(manager.gen)
        module = frame.f_globals.get("__name__") if frame is not None else None
        name = self._choose(code, module) if self._choose is not None else None
        return _Lane(self._category, name, created) if isinstance(name, str) else False

    def _look(self, lane: _Lane | bool | None, manager: Any, *times: Any) -> _Lane | bool:
        created, _looked, suspended, now, resumes = times
        if lane is None:
            lane = self._make_lane(manager, created)
        if isinstance(lane, _Lane):
            lane.look(suspended, now, resumes)
        return lane

    def _end(self, lane: _Lane | bool | None, manager: Any, *times: int) -> None:
        created, _looked, now = times
        if lane is None:
            lane = self._make_lane(manager, created)
        if isinstance(lane, _Lane):
            lane.end(now)
