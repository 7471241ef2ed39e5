"""Programs of regular expressions: compiled from a tree, executed by `regex` and `regex_captures`.

Each instruction has a condition and the positions to continue at, in the order in which `re` would
try them.
"""

from __future__ import annotations

from stretto.base.errors import ConfigError
from stretto.base.regex_syntax import Choice, Group, Place, Repeat, Sequence, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    from stretto.base.character_set import CharacterSet
    from stretto.base.regex_syntax import Node

    Instruction: TypeAlias = tuple["CharacterSet | str | int | None", tuple[int, ...]]
    """A condition, and the positions to continue at. The condition is a set of characters, one of
    which is consumed; or a kind of place, which is checked; or a number: the place is stored in the
    captures at this index; or None, which always holds."""

MAX_PROGRAM: Final = 2000
"""The largest number of instructions of one expression, without those that store captures."""

MATCH: Final = 0
"""The position of the last instruction of every program."""


class Program:
    """The program of an expression.

    Args:
        pattern: In the syntax of `regex_syntax`.
        captures: Whether instructions store the begin and end of each group.

    Raises:
        ConfigError: The pattern is malformed, too large, or uses unsupported syntax.

    Attributes:
        instructions: The instructions, by position.
        start: The position of the first instruction.
        groups: The number of groups.
    """

    __slots__ = ("_captures", "groups", "instructions", "start")

    def __init__(self, pattern: str, *, captures: bool) -> None:
        tree = parse(pattern)
        size = _size(tree)
        if size > MAX_PROGRAM:
            raise ConfigError(f"it is too large: {size} steps, at most {MAX_PROGRAM} are allowed")
        self._captures = captures
        self.groups = 0
        self.instructions: list[Instruction] = [(None, ())]
        self.start = self._emit(tree, MATCH)

    def _emit(self, node: Node, after: int) -> int:
        """Append the instructions of a tree; the program then continues at instruction `after`.

        Returns:
            The index of the first instruction to execute."""
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                after = self._emit(part, after)
            return after
        if isinstance(node, Choice):
            return self._append(None, *(self._emit(part, after) for part in node.parts))
        if isinstance(node, Repeat):
            return self._emit_repeat(node, after)
        if isinstance(node, Group):
            self.groups = max(self.groups, node.number)
            if not self._captures:
                return self._emit(node.part, after)
            end = self._append(2 * node.number + 1, after)
            return self._append(2 * node.number, self._emit(node.part, end))
        return self._append(node.kind if isinstance(node, Place) else node, after)

    def _emit_repeat(self, node: Repeat, after: int) -> int:
        end, least = after, node.least
        if node.most is None:
            loop = self._append(None)
            begin = self._emit(node.part, loop)
            self.instructions[loop] = None, (end, begin) if node.lazy else (begin, end)
            after = begin if least else loop
            least = max(least - 1, 0)
        else:
            for _ in range(node.most - least):
                begin = self._emit(node.part, after)
                after = self._append(None, *((end, begin) if node.lazy else (begin, end)))
        for _ in range(least):
            after = self._emit(node.part, after)
        return after

    def _append(self, condition: CharacterSet | str | int | None, *targets: int) -> int:
        self.instructions.append((condition, targets))
        return len(self.instructions) - 1


def _size(node: Node) -> int:
    """Return the number of instructions of a tree, without generating them.

    Nested repeat counts multiply, so a short expression may have a huge program.
    """
    if isinstance(node, Sequence):
        return sum(map(_size, node.parts))
    if isinstance(node, Choice):
        return 1 + sum(map(_size, node.parts))
    if isinstance(node, Group):
        return _size(node.part)
    if isinstance(node, Repeat):
        part = _size(node.part)
        if node.most is None:
            return part * max(node.least, 1) + 1
        return part * node.most + node.most - node.least
    return 1
