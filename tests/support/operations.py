"""Counts the bytecode operations and comparisons of a call. All machines give the same counts."""

from __future__ import annotations

import sys


def operations(call):
    """Run `call`; return how many bytecode operations in Stretto's own code it executes."""
    count = 0

    def trace(frame, event, _arg):
        nonlocal count
        if event == "call" and not frame.f_globals.get("__name__", "").startswith("stretto."):
            return None
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys._getframe().f_trace_opcodes = True  # CPython reads f_trace_opcodes when tracing starts.
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


class CountedName(str):
    """A string that counts its comparisons, including those made by C code."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other):
        CountedName.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def comparisons(call):
    """Run `call`; return the number of comparisons of a CountedName."""
    before = CountedName.comparisons
    call()
    return CountedName.comparisons - before
