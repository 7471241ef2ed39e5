"""Finds the slice to which each point of a flow belongs.

In FXT a point is a record of its own, somewhere within its duration. In Perfetto's packets a point
belongs to the BEGIN or the END of a slice, and the order of these events is the order of the flow's
points:

    S  [..... begin .....]              BEGIN of S
                  T  [.. end ..]        BEGIN of T: later than that of S
    S  [..... begin ........ end ...]   END of S: the BEGIN of S is before T

So a point is put on the BEGIN of its slice. If that BEGIN is before the flow's previous point, the
point is put on the END of the slice. Several points of a flow may be in one slice: they are an
arrow from the slice to itself.

An event is identified by its position in the order of time. The resulting points are sorted by the
position of their event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.fxt import format as fxt
from stretto.analysis.fxt.channel_messages import CATEGORY, FLOW, ChannelRoles
from stretto.analysis.fxt.flow_scopes import FlowScopes

if TYPE_CHECKING:
    from typing import Any

    from stretto.analysis.fxt.flow_scopes import Flow
    from stretto.analysis.fxt.outcome import Outcome
    from stretto.analysis.spool import Spool

_MAX_THREADS = 1 << 18
_MAX_DEPTH = 512
_MAX_LATE_POINTS = 1024

NO_ROLE = ("", "")


class _Slice:
    __slots__ = ("is_instant", "late", "position", "timestamp")

    def __init__(self, position: int, timestamp: int, *, is_instant: bool = False) -> None:
        self.position = position
        self.timestamp = timestamp
        self.is_instant = is_instant
        self.late: list[tuple[int, bool]] | None = None
        """Points to put on its END."""

    def has_room(self) -> bool:
        """Whether another flow point can be put on the slice's END. An instant has no END."""
        return not self.is_instant and len(self.late or ()) < _MAX_LATE_POINTS


class _Thread:
    __slots__ = ("deeper", "instant", "slices")

    def __init__(self) -> None:
        self.slices: list[_Slice] = []
        self.deeper = 0
        """The number of open slices beyond the limit."""
        self.instant: _Slice | None = None
        """The thread's last event, if that was an instant."""


class EnclosingSlices:
    """Finds the slice that encloses each point of a flow.

    Args:
        points: Receives an entry for each point. The key of the entry is the position of the event.
            The value of the entry is the flow's id, whether the flow ends at the event, and the
            role and kind of a channel's message.
        outcome: Counts the points whose slice is not found.
    """

    def __init__(self, points: Spool, outcome: Outcome) -> None:
        self._points = points
        self._outcome = outcome
        self._threads: dict[tuple[int, int], _Thread] = {}
        self._scopes = FlowScopes()
        self._roles = ChannelRoles()

    def add(self, position: int, timestamp: int, entry: tuple[Any, ...]) -> None:
        """Process the next event in the order of time."""
        kind, process, number, category, name, _, flow_id = entry
        if fxt.ASYNC_BEGIN <= kind <= fxt.ASYNC_END or kind == fxt.COUNTER:
            return
        thread = self._thread(process, number)
        if thread is None:
            is_flow = kind >= fxt.FLOW_BEGIN
            self._outcome.leave_out(f"flow points on threads beyond {_MAX_THREADS}", is_flow)
        elif kind >= fxt.FLOW_BEGIN:
            is_channel = category == CATEGORY and name == FLOW
            self._flow(kind, flow_id, process, thread, timestamp=timestamp, channel=is_channel)
        else:
            self._slice(kind, position, timestamp, thread)

    def _thread(self, process: int, number: int) -> _Thread | None:
        thread = self._threads.get((process, number))
        if thread is None and len(self._threads) < _MAX_THREADS:
            thread = self._threads[process, number] = _Thread()
        return thread

    def _slice(self, kind: int, position: int, timestamp: int, thread: _Thread) -> None:
        thread.instant = None
        if kind == fxt.INSTANT:
            thread.instant = _Slice(position, timestamp, is_instant=True)
        elif kind == fxt.DURATION_BEGIN:
            if len(thread.slices) == _MAX_DEPTH:
                thread.deeper += 1
            else:
                thread.slices.append(_Slice(position, timestamp))
        elif thread.deeper:
            thread.deeper -= 1
        elif thread.slices:
            for flow_id, ends in thread.slices.pop().late or ():
                self._points.add((position,), (flow_id, ends, *NO_ROLE))

    def _flow(
        self,
        kind: int,
        number: int,
        process: int,
        thread: _Thread,
        *,
        timestamp: int,
        channel: bool,
    ) -> None:
        enclosing = thread.slices[-1] if thread.slices else None
        if thread.instant is not None and thread.instant.timestamp == timestamp:
            enclosing = thread.instant
        if enclosing is None:
            self._outcome.leave_out("flow points in no duration")
            return
        if kind == fxt.FLOW_BEGIN:
            flow = self._scopes.begin(number, process, enclosing.position)
        else:
            found = self._scopes.find(number, process)
            if found is None:
                self._outcome.leave_out("flow points whose flow has no known beginning")
                return
            flow = found
        flow.points += 1
        role = self._roles.role(kind, flow, process) if channel else NO_ROLE
        ends = kind == fxt.FLOW_END
        joined = self._join(enclosing, flow, ends, role)
        if ends:
            self._scopes.end(flow, enclosing.position if joined else None)

    def _join(self, enclosing: _Slice, flow: Flow, ends: bool, role: tuple[str, str]) -> bool:
        if enclosing.position >= flow.last and flow.ordered:
            flow.last = enclosing.position
            self._points.add((enclosing.position,), (flow.id, ends, *role))
            return True
        if not flow.ordered or not enclosing.has_room():
            self._outcome.leave_out("flow points that return to an earlier duration")
        else:
            flow.ordered = False
            enclosing.late = [*(enclosing.late or ()), (flow.id, ends)]
            return True
        return False

    def finish(self) -> None:
        """Count the points that were put on ENDs which never came. Call this after the last event.

        These points are left out.
        """
        for thread in self._threads.values():
            late = sum(len(each.late or ()) for each in thread.slices)
            self._outcome.leave_out("flow points in durations that never end", late)
