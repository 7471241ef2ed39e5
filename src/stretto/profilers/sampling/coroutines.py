"""Reads the coroutines of another process: their frames, and what they await.

A coroutine that is suspended in an `await` has the awaited object on top of its stack:

    coroutine ─> frame state
              ─> frame ─> code, instruction
                       ─> top of its stack ─> the awaited coroutine ─> ...

An `async for` awaits an object that has the asynchronous generator.

The process runs meanwhile, so nothing that is read is trusted, and the depth is bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.profilers.sampling.line_table import line_at
from stretto.profilers.sampling.stacks import Frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.profilers.sampling.layout import Layout
    from stretto.profilers.sampling.objects import ObjectReader

_KINDS = frozenset({"coroutine", "generator", "async_generator"})
_WRAPPERS = frozenset(
    {"coroutine_wrapper", "anext_awaitable", "async_generator_asend", "async_generator_athrow"}
)
"""Types of objects that run another one, which is their first member."""
_FIRST_MEMBER = 16
_MAX_DEPTH = 100
_MAX_WRAPPERS = 4
_MAX_LINE_TABLE = 1 << 16
_MAX_STACK = 1 << 16


class CoroutineReader:
    """Reads the coroutines of one process, by their addresses."""

    def __init__(self, reader: ObjectReader, layout: Layout) -> None:
        self._reader, self._layout = reader, layout

    def frames(self, coroutine: int) -> Iterator[Frame]:
        """Yield the frame of a coroutine, and of those that it awaits; the outermost first.

        Raises:
            OSError: The memory can't be read.
            ValueError: The coroutine is none, or has changed meanwhile.
        """
        layout = self._layout
        for _ in range(_MAX_DEPTH):
            coroutine = self._unwrapped(coroutine)
            if not coroutine or self._reader.type_name(coroutine) not in _KINDS:
                return
            state = self._reader.bytes_at(coroutine + layout["gen_frame_state"], 1)[0]
            frame = coroutine + layout["gen_iframe"]
            if state == layout["gen_cleared"]:
                return
            yield self._frame(frame)
            if state != layout["gen_suspended_in_await"]:
                return
            coroutine = self._reader.word(self._top(frame)) & ~layout["code_tag"]

    def _unwrapped(self, awaited: int) -> int:
        """Return the coroutine or generator that an awaited object runs, or else the object."""
        for _ in range(_MAX_WRAPPERS):
            if awaited and self._reader.type_name(awaited) in _WRAPPERS:
                awaited = self._reader.word(awaited + _FIRST_MEMBER)
        return awaited

    def _top(self, frame: int) -> int:
        """Return where the stack of a suspended frame has the awaited object."""
        layout, reader = self._layout, self._reader
        if "frame_stackpointer" in layout:
            return reader.word(frame + layout["frame_stackpointer"]) - layout["gen_awaited_depth"]
        used = int.from_bytes(reader.bytes_at(frame + layout["frame_stacktop"], 4), "little")
        if not 0 < used <= _MAX_STACK:
            raise ValueError("no frame")
        return frame + layout["frame_locals"] + 8 * used - layout["gen_awaited_depth"]

    def _frame(self, frame: int) -> Frame:
        layout, reader = self._layout, self._reader
        code = reader.word(frame + layout["frame_code"]) & ~layout["code_tag"]
        name = reader.code_name(code)
        instruction = reader.word(frame + layout["frame_instruction"])
        offset = instruction - code - layout["code_start"]
        table = reader.word(code + layout["code_line_table"])
        size = min(reader.word(table + layout["bytes_size"]), _MAX_LINE_TABLE)
        encoded = reader.bytes_at(table + layout["bytes_data"], size)
        line = line_at(encoded, name.first_line, offset)
        return Frame(name.function, name.filename, line)
