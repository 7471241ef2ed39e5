"""Decides which points belong to the same flow.

The process that begins a flow chooses the flow's id, and several processes may count from 1
independently. So if a second process begins a flow with an id that is in use, this is a second
flow, and gets a new id.

A step or an end belongs to the flow that its own process began with this id. If there is none, it
belongs to the only flow with this id. If several other processes have a flow with this id, the
point is left out.

    begin 7 by A ─── step 7 by B ─── end 7 by A        one flow, over two processes
    begin 7 by A ─── begin 7 by B ─── end 7 by B       two flows
"""

from __future__ import annotations

from stretto.analysis.fxt.uuids import uuid_of

_MAX_FLOWS = 1 << 20
_MAX_ENDED = 1 << 12


class Flow:
    """A flow that has begun and not ended.

    Attributes:
        id: The flow's id in the packets.
        number: The flow's id in the records.
        process: The process that began the flow.
        points: The number of points so far.
        last: The position of the slice of the latest point; -1 if there is none.
        is_reply: Whether the flow is the reply to a message of a channel.
        ordered: Whether later points can still be put behind the existing ones.
    """

    __slots__ = ("id", "is_reply", "last", "number", "ordered", "points", "process")

    def __init__(self, flow_id: int, number: int, process: int) -> None:
        self.id = flow_id
        self.number = number
        self.process = process
        self.points = 0
        self.last = -1
        self.ordered = True
        self.is_reply = False


class FlowScopes:
    """The open flows. Their number is bounded: the oldest ones are forgotten."""

    def __init__(self) -> None:
        self._flows: dict[int, list[Flow]] = {}
        self._used_up: dict[int, None] = {}
        self._ended_at: dict[int, int] = {}
        """The slices in which the latest flows ended, by the flows' numbers."""
        self._made = 0

    def begin(self, number: int, process: int, position: int) -> Flow:
        """Begin a flow.

        Args:
            number: The flow's id in the records.
            process: The process that begins the flow.
            position: The slice in which the flow begins. If a flow of this number has ended in the
                same slice, the new flow gets another id. With the same id the old flow's end would
                end the new flow, because in the packets of a slice the beginnings of flows come
                before the ends.
        """
        others = self._flows.get(number)
        flow_id = number
        is_taken = number in self._used_up or self._ended_at.get(number) == position
        if others or not number or is_taken:
            self._made += 1
            flow_id = uuid_of("flow", number, process, self._made)
        flow = Flow(flow_id, number, process)
        kept = [other for other in others or () if other.process != process]
        self._flows[number] = [*kept[-7:], flow]
        if len(self._flows) > _MAX_FLOWS:
            self._flows.pop(next(iter(self._flows)))
        return flow

    def find(self, number: int, process: int) -> Flow | None:
        """Return the flow to which a step or an end belongs; None if there is none, or several."""
        flows = self._flows.get(number, ())
        for flow in flows:
            if flow.process == process:
                return flow
        return flows[0] if len(flows) == 1 else None

    def end(self, flow: Flow, position: int | None) -> None:
        """End a flow.

        Args:
            flow: The flow.
            position: The slice in whose packets the flow ends. None if no packet contains the end:
                then the flow's id is not used again.
        """
        if position is None:
            self._used_up[flow.number] = None
            if len(self._used_up) > _MAX_FLOWS:
                self._used_up.pop(next(iter(self._used_up)))
        else:
            # Delete the old entry: the new entry is appended at the end, as the newest.
            self._ended_at.pop(flow.number, None)
            self._ended_at[flow.number] = position
            if len(self._ended_at) > _MAX_ENDED:
                self._ended_at.pop(next(iter(self._ended_at)))
        flows = self._flows[flow.number]
        flows.remove(flow)
        if not flows:
            del self._flows[flow.number]
