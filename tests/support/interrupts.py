"""Raises an exception at each place in the code where a signal handler could raise one.

CPython runs a signal handler only when a call has returned, when a function begins, or when a loop
jumps back. An exception that the handler raises propagates from there.
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
    """The exception that the simulated signal handler raises."""


def interrupted(call: Callable[[], Any], place: int, within: str) -> bool:
    """Call a function and raise `Interrupt` at one place in it.

    Args:
        call: The function to call.
        place: Number of the place, counted from 0 during the call.
        within: A text; only places in files whose path contains this text are counted.

    Returns:
        Whether the place exists and the call raised `Interrupt`.
    """
    tracer = _Tracer(place, within)
    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # some CPython versions require this before settrace
    gc.disable()  # an exception raised in `__del__` would be lost
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
    """A trace function that raises `Interrupt` at one place in the traced code."""

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
    """The bytecode instructions of a function, by their offsets."""

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
        """Return the offset of the exception handler for an instruction; -1 if there is none."""
        for entry in self._entries:
            if entry.start <= offset < entry.end:
                return entry.target
        return -1
