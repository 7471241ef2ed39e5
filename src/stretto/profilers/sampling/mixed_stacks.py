"""Puts the Python calls of a thread at their places between its C functions.

    C functions                     Python calls        mixed
    clock_nanosleep                 leaf                clock_nanosleep
    _PyEval_EvalFrameDefault  <───  sorter              leaf, sorter
    list_sort                       main                list_sort
    _PyEval_EvalFrameDefault  <───                      main

One C call of the interpreter's loop executes a Python call and those that it calls directly. The
next Python call that C code has made is marked: in CPython 3.11 by `is_entry` in its frame, later
by a frame of another owner above it.

The loop is recognised by its name. Where the C functions end early, or parts of the loop have no
name, the places of the outer Python calls aren't known: they are last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.profilers.sampling.native_code import LOOP
from stretto.profilers.sampling.native_stacks import NativeStacks
from stretto.profilers.sampling.objects import ObjectReader
from stretto.profilers.sampling.process import ProcessError
from stretto.profilers.sampling.stacks import Frame, ThreadStack, read_stacks

if TYPE_CHECKING:
    from stretto.profilers.sampling.layout import Layout
    from stretto.profilers.sampling.native_code import NativeFrame
    from stretto.profilers.sampling.process import PythonProcess

_FRAME_BYTES = 96
_MAX_FRAMES = 4096


def read_mixed_stacks(process: PythonProcess) -> list[ThreadStack]:
    """Return the threads of a process as `read_stacks` does; those that wait with C functions.

    Raises:
        ProcessError: The process has ended, or can't be read.
    """
    try:
        native = NativeStacks(process.pid)
    except OSError as error:
        raise ProcessError(f"Process {process.pid} can't be read: {error}.") from error
    reader = ObjectReader(process.pid, process.layout)
    return [_with_native(each, native, reader, process.layout) for each in read_stacks(process)]


def _with_native(
    stack: ThreadStack, native: NativeStacks, reader: ObjectReader, layout: Layout
) -> ThreadStack:
    found = native.of_thread(stack.native_id)
    if stack.frames is None or not found:
        return stack
    try:
        counts = calls_from_c(reader, layout, stack.state)
    except OSError:
        return stack  # The thread has ended.
    frames = mixed(stack.frames, counts, found)
    loops = sum(_is_loop(function) for function, _ in found)
    return stack._replace(
        frames=frames,
        has_native=any(frame.native for frame in frames),
        has_unplaced=loops < len(counts),
    )


def calls_from_c(reader: ObjectReader, layout: Layout, state: int) -> list[int]:
    """Return how many Python calls each call of the interpreter's loop executes.

    Args:
        reader: Reads the process.
        layout: Its layout.
        state: The address of the thread state.

    Returns:
        The numbers, of the innermost call first.

    Raises:
        OSError: The memory can't be read.
    """
    counts = [0]
    frame = reader.word(state + layout["thread_frame"])
    if layout["has_control_frame"]:
        frame = reader.word(frame + layout["control_frame"])
    for _ in range(_MAX_FRAMES):
        if not frame:
            break
        content = reader.bytes_at(frame, _FRAME_BYTES)
        is_call = content[layout["frame_owner"]] < layout["first_foreign_owner"]
        counts[-1] += is_call
        if not is_call or _is_entry(content, layout):
            counts.append(0)
        at = layout["frame_previous"]
        frame = int.from_bytes(content[at : at + 8], "little")
    return [count for count in counts if count]


def _is_entry(frame: bytes, layout: Layout) -> bool:
    return "frame_is_entry" in layout and bool(frame[layout["frame_is_entry"]])


def mixed(calls: list[Frame], counts: list[int], native: list[NativeFrame]) -> list[Frame]:
    """Return all calls of a thread, the innermost first.

    Args:
        calls: The Python calls.
        counts: The result of `calls_from_c`.
        native: The C calls, as far as they were found.

    Returns:
        The Python calls alone if the counts are of another stack.
    """
    if sum(counts) != len(calls):
        return calls
    found: list[Frame] = []
    ahead, groups = iter(calls), iter(counts)
    for function, filename in native:
        if _is_loop(function):
            found += [next(ahead) for _ in range(next(groups, 0))]
        else:
            found.append(Frame(function, filename, 0, native=True))
    return found + list(ahead)


def _is_loop(function: str) -> bool:
    """Return whether a C function is the interpreter's loop; a part of it has a suffix."""
    return function.partition(".")[0] == LOOP
