"""Source files, and places in source files."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from stretto_fidl.errors import CompileError


class SourceFile:
    """A file's name and text.

    Args:
        name: The name in the IR and in errors.
        text: The whole text.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        for position, character in enumerate(self.text):
            if character == "\n":
                starts.append(position + 1)
        return starts

    def line_of(self, position: int) -> int:
        """Return the number of the line of a position; lines are counted from 1."""
        return bisect_right(self._line_starts, position)

    def column_of(self, position: int) -> int:
        """Return the column of a position, in characters and counted from 1."""
        return position - self._line_starts[self.line_of(position) - 1] + 1

    def line_text(self, line: int) -> str:
        """Return the text of a line, without its newline."""
        start = self._line_starts[line - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else None].rstrip("\r")


class Span:
    """A span of a file: the characters from `start` up to, but not including, `end`."""

    __slots__ = ("end", "source", "start")

    def __init__(self, source: SourceFile, start: int, end: int) -> None:
        self.source = source
        self.start = start
        self.end = end

    @property
    def text(self) -> str:
        """The characters of the span."""
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        """The number of the line of the first character; lines are counted from 1."""
        return self.source.line_of(self.start)

    @property
    def column(self) -> int:
        """The column of the first character, in characters and counted from 1."""
        return self.source.column_of(self.start)

    @property
    def byte_column(self) -> int:
        """The column of the first character, in bytes of UTF-8 and counted from 1."""
        line_start = self.start - self.column + 1
        return len(self.source.text[line_start : self.start].encode()) + 1

    def to(self, last: Span) -> Span:
        """Return the span from the start of this span to the end of another span."""
        return Span(self.source, self.start, last.end)

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    def error(self, reason: str) -> CompileError:
        """Return a `CompileError` whose place is this span.

        Args:
            reason: What is wrong, and what to do about it.
        """
        text = self.source.line_text(self.source.line_of(self.start))
        return CompileError(reason, self.source.name, self.line, self.column, text)


class GeneratedSpan(Span):
    """The span of a name that is in no file, such as a result's `err`.

    Args:
        text: The name.
        line: The line in the file `generated`, which does not exist.
    """

    __slots__ = ("_line",)

    def __init__(self, text: str, line: int) -> None:
        super().__init__(SourceFile("generated", text), 0, len(text))
        self._line = line

    @property
    def line(self) -> int:
        """The number of the line in the file `generated`, which doesn't exist."""
        return self._line
