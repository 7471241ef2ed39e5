"""Exceptions where a signal's handler may raise one: at each such place in turn.

CPython runs handlers of signals when a call has returned, when a function begins, and when a loop
jumps back; not between any other two instructions. What they raise comes from the call.
"""

from __future__ import annotations

import dis
import gc
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, ClassVar

_PLACES = ("CALL", "CALL_FUNCTION_EX", "CALL_KW", "RESUME", "JUMP_BACKWARD")


class Interrupt(Exception):  # noqa: N818
    """What the handler raises."""


def interrupted(call: Callable[[], Any], place: int, within: str) -> bool:
    """Make a call, and interrupt it.

    Args:
        call: What is called.
        place: At which place, from 0.
        within: Only places in files whose path has this are counted.

    Returns:
        Whether there was such a place, and `Interrupt` came out of the call.
    """
    tracer = _Tracer(place, within)
    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # some versions ask for one before they begin
    gc.disable()  # what `__del__` raises is lost
    sys.settrace(tracer)
    try:
        call()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
        gc.enable()
    assert tracer.left >= 0, "the interrupt got lost"
    return False


class _Tracer:
    """Raises at a place."""

    def __init__(self, place: int, within: str) -> None:
        self.left = place
        self._within = within
        self._last: dict[FrameType, int] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if self._within not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            code = _Code.of(frame.f_code)
            last, now = self._last.get(frame, 0), frame.f_lasti
            self._last[frame] = now
            if code.names[last] in _PLACES and code.handler(last) == code.handler(now):
                if not self.left:
                    self.left = -1
                    raise Interrupt
                self.left -= 1
        return self


class _Code:
    """What is known of a function's instructions, by their offsets."""

    _known: ClassVar[dict[CodeType, _Code]] = {}

    def __init__(self, code: CodeType) -> None:
        self._entries = dis.Bytecode(code).exception_entries
        self.names = {each.offset: each.opname for each in dis.get_instructions(code)}

    @classmethod
    def of(cls, code: CodeType) -> _Code:
        found = cls._known.get(code)
        if found is None:
            found = cls._known[code] = cls(code)
        return found

    def handler(self, offset: int) -> int:
        """Where an exception of an instruction goes; -1: to the caller."""
        for entry in self._entries:
            if entry.start <= offset < entry.end:
                return entry.target
        return -1
