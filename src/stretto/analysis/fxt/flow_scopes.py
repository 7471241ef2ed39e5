"""Which points belong to one flow.

A flow's id is of whoever begins it. Several processes may count from 1, each for itself; so an id
that is begun by a second process while the first one's is under way is another flow, and gets an
id of its own. A step or an end is of its own process's flow if there is one, else of the one that
there is; of several it can't be said, and it is left out.

    begin 7 by A ─── step 7 by B ─── end 7 by A        one flow, over two processes
    begin 7 by A ─── begin 7 by B ─── end 7 by B       two flows
"""

from __future__ import annotations

from stretto.analysis.fxt.uuids import uuid_of

_MAX_FLOWS = 1 << 20
_MAX_ENDED = 1 << 12


class Flow:
    """A flow that is under way.

    Attributes:
        id: In the packets.
        number: In the records.
        process: Which began it.
        points: How many it has so far.
        last: Where the last one is: the position of its slice.
        is_reply: Of a channel's message: it is the answer to one.
        ordered: Later points can still be put behind those that are there.
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
    """The flows that are under way, a bounded number of them: the oldest ones are forgotten."""

    def __init__(self) -> None:
        self._flows: dict[int, list[Flow]] = {}
        self._used_up: dict[int, None] = {}
        self._ended_at: dict[int, int] = {}
        """The slices in which flows ended lately, by their numbers."""
        self._made = 0

    def begin(self, number: int, process: int, position: int) -> Flow:
        """A flow begins.

        Args:
            number: In the records.
            process: Which begins it.
            position: The slice in which it begins. Packets put a slice's ends of flows last: if one
                of this number has ended there, this is another id.
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
        """The flow to which a step or an end belongs, if that can be said."""
        flows = self._flows.get(number, ())
        for flow in flows:
            if flow.process == process:
                return flow
        return flows[0] if len(flows) == 1 else None

    def end(self, flow: Flow, position: int | None) -> None:
        """A flow is over.

        Args:
            flow: Which one.
            position: The slice whose packets say so; None: none does, and its id must not come
                again.
        """
        if position is None:
            self._used_up[flow.number] = None
            if len(self._used_up) > _MAX_FLOWS:
                self._used_up.pop(next(iter(self._used_up)))
        else:
            self._ended_at.pop(flow.number, None)  # to make it the youngest
            self._ended_at[flow.number] = position
            if len(self._ended_at) > _MAX_ENDED:
                self._ended_at.pop(next(iter(self._ended_at)))
        flows = self._flows[flow.number]
        flows.remove(flow)
        if not flows:
            del self._flows[flow.number]
