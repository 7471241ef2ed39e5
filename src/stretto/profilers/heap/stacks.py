"""The interned data of one heap's dumps: functions, files, frames and stacks.

The sampler numbers the stacks of all heaps together. A heap's packets contain only the stacks
that its samples have, with numbers of their own.

Stacks are shown as those of other samples: without the machinery of imports and threads. Stacks
that differ only in that are one stack in the packets.

Totals belong to stacks, so different stacks must stay different in each reader. The frames of a
function differ in their line; for readers that ignore lines they also differ in `rel_pc`, which is
the sampler's number of the frame.
"""

from __future__ import annotations

import sys

from stretto import _pyhooks
from stretto.profilers.sampling.interned_stacks import InternedStacks
from stretto.profilers.sampling.objects import CodeName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.protos.trace import InternedData


class _Functions:
    """Names of the sampler's functions, by number."""

    def code_name(self, function: int) -> CodeName:
        return CodeName(*_pyhooks.heap_function(function))

    def identity(self, function: int) -> bytes:
        """Return nothing: a number always means the same function."""
        return b""


class HeapStacks:
    """The stacks that a packet sequence has defined."""

    def __init__(self) -> None:
        self._scripts: set[str] = set()
        self._interned = InternedStacks(_Functions(), self._scripts)
        self._frames: dict[int, int] = {}
        self._stacks: dict[int, int] = {}
        self._shown: dict[tuple[int, ...], int] = {}

    def number(self, stack: int) -> int:
        """Return the number of a stack in the packets; `take` has its definition, if it is new."""
        known = self._stacks.get(stack)
        if known is None:
            known = self._stacks[stack] = self._add(_pyhooks.heap_stack(stack))
        return known

    def _add(self, stack: tuple[int, ...]) -> int:
        frames = self._interned.unfolded(tuple(map(self._frame, stack)))
        known = self._shown.get(frames)
        if known is None:
            known = self._shown[frames] = self._interned.add_shown(frames)
        return known

    def _frame(self, frame: int) -> int:
        known = self._frames.get(frame)
        if known is None:
            function, line = _pyhooks.heap_frame(frame)
            self._interned.add_frame(function, line, frame)
            known = self._frames[frame] = len(self._frames) + 1
        return known

    def take(self) -> InternedData | None:
        """Return what is new since the last call; None if nothing is."""
        if script := getattr(sys.modules.get("__main__"), "__file__", None):
            self._scripts.add(script)
        return self._interned.take()
