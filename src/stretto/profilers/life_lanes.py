"""Lanes of objects that live long: tasks, context managers (`native/hooks/lives.h`)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Lane(Protocol):
        """Writes the slices of one object; `task_lanes.Lane` describes the arguments."""

        def look(self, living: Any, looked: int, suspended: int, now: int, resumes: bool) -> None:
            """Write what has changed since the last look."""

        def end(self, living: Any, looked: int, now: int) -> None:
            """Write the end of the object's life."""


def observers(
    make: Callable[[Any, int], Lane | None],
) -> tuple[Callable[..., Lane | bool], Callable[..., None]]:
    """Return the functions `look` and `end` for `_pyhooks.watch_tasks` or `watch_managers`.

    Args:
        make: returns the lane of an object that was created at a time; None if it has none.
    """

    def look(lane: Lane | bool | None, living: Any, created: int, *times: Any) -> Lane | bool:
        if lane is None:
            lane = make(living, created) or False
        if not isinstance(lane, bool):
            lane.look(living, *times)
        return lane

    def end(lane: Lane | bool | None, living: Any, created: int, looked: int, now: int) -> None:
        if lane is None:
            lane = make(living, created)
        if lane is not None and not isinstance(lane, bool):
            lane.end(living, looked, now)

    return look, end
