"""Regular expressions of configs: compiled once, matched in time linear in the text.

The expression is chosen by the author of a config, the text by a producer, which may be hostile.
`re` tries alternatives one after the other, which takes exponential time for some expressions and
texts. Here all alternatives advance together, as in RE2::

    pattern --parse--> tree --emit--> program --full_match--> sets of program positions

The set that follows a set and a character is cached, so that most characters cost one look-up.
Syntax: `regex_syntax`.
"""

from __future__ import annotations

from stretto.base.character_set import WORD, CharacterSet
from stretto.base.errors import ConfigError
from stretto.base.regex_syntax import (
    BEGIN,
    END,
    WORD_BOUNDARY,
    Choice,
    Group,
    Place,
    Repeat,
    Sequence,
    parse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final, TypeAlias

    from stretto.base.regex_syntax import Node

    Instruction: TypeAlias = tuple["CharacterSet | str | None", tuple[int, ...]]
    """A condition, and the positions to continue at. The condition is a set of characters, one of
    which is consumed; or a kind of place, which is checked; or None, which always holds."""
    State: TypeAlias = tuple[frozenset[int], str]
    """The current program positions, and the character before; "" at the start of the text."""

MAX_PROGRAM: Final = 2000
"""The largest number of instructions of one expression."""
MAX_TEXT: Final = 256
"""The largest number of characters of a name."""
MAX_KNOWN_STEPS: Final = 2000
"""The largest number of cached steps; a full cache is emptied."""

_MATCH: Final = 0
"""The last instruction of every program."""


class Regex:
    """A compiled regular expression.

    Args:
        pattern: In the syntax of `regex_syntax`.
        max_text: The largest number of characters of a text. Longer texts don't match.

    Raises:
        ConfigError: The pattern is malformed, too large, or uses unsupported syntax.

    Attributes:
        size: The number of instructions of its program.
    """

    __slots__ = ("_known", "_max_text", "_program", "_start")

    def __init__(self, pattern: str, *, max_text: int = MAX_TEXT) -> None:
        self._max_text = max_text
        tree = parse(pattern)
        size = program_size(tree)
        if size > MAX_PROGRAM:
            raise ConfigError(f"it is too large: {size} steps, at most {MAX_PROGRAM} are allowed")
        self._program: list[Instruction] = [(None, ())]
        self._start = _emit(tree, self._program, _MATCH)
        self._known: dict[tuple[State, str], State] = {}

    @property
    def size(self) -> int:
        return len(self._program)

    def full_match(self, text: str) -> bool:
        """Whether the whole text matches; False for a text longer than `max_text` characters."""
        if len(text) > self._max_text:
            return False
        state: State = (frozenset((self._start,)), "")
        for character in text:
            state = self._step(state, character)
            if not state[0]:
                return False
        return _MATCH in self._reach(state, "")

    def _step(self, state: State, character: str) -> State:
        known = self._known.get((state, character))
        if known is not None:
            return known
        if len(self._known) >= MAX_KNOWN_STEPS:
            self._known.clear()
        program = self._program
        following: set[int] = set()
        for at in self._reach(state, character):
            condition, targets = program[at]
            if isinstance(condition, CharacterSet) and character in condition:
                following.update(targets)
        # For `\b`, states keep only whether the character belongs to a word: this saves states.
        new = frozenset(following), "a" if character in WORD else " "
        self._known[state, character] = new
        return new

    def _reach(self, state: State, following: str) -> set[int]:
        """Return all positions that can be reached without consuming a character."""
        places, before = state
        reached = set(places)
        waiting = list(places)
        while waiting:
            condition, targets = self._program[waiting.pop()]
            if isinstance(condition, CharacterSet):
                continue
            if condition is not None and not holds(condition, before, following):
                continue
            for target in targets:
                if target not in reached:
                    reached.add(target)
                    waiting.append(target)
        return reached


def holds(kind: str, before: str, following: str) -> bool:
    """Whether a condition like WORD_BOUNDARY holds between two characters; "" is the text's end."""
    if kind == BEGIN:
        return not before
    if kind == END:
        return not following
    boundary = (before in WORD) != (following in WORD)
    return boundary == (kind == WORD_BOUNDARY)


def program_size(node: Node) -> int:
    """Return the number of instructions of a tree, without generating them.

    Nested repeat counts multiply, so a short expression may have a huge program.
    """
    if isinstance(node, Sequence):
        return sum(map(program_size, node.parts))
    if isinstance(node, Choice):
        return 1 + sum(map(program_size, node.parts))
    if isinstance(node, Group):
        return program_size(node.part)
    if isinstance(node, Repeat):
        part = program_size(node.part)
        if node.most is None:
            return part * max(node.least, 1) + 1
        return part * node.most + node.most - node.least
    return 1


def _emit(node: Node, program: list[Instruction], after: int) -> int:
    """Append the instructions of a tree. They continue at `after`; their start is returned."""
    if isinstance(node, Sequence):
        for part in reversed(node.parts):
            after = _emit(part, program, after)
        return after
    if isinstance(node, Choice):
        return _append(program, None, [_emit(part, program, after) for part in node.parts])
    if isinstance(node, Repeat):
        return _emit_repeat(node, program, after)
    if isinstance(node, Group):
        return _emit(node.part, program, after)
    return _append(program, node.kind if isinstance(node, Place) else node, [after])


def _emit_repeat(node: Repeat, program: list[Instruction], after: int) -> int:
    end, least = after, node.least
    if node.most is None:
        loop = _append(program, None, [])
        begin = _emit(node.part, program, loop)
        program[loop] = None, (begin, end)
        after = begin if least else loop
        least = max(least - 1, 0)
    else:
        for _ in range(node.most - least):
            after = _append(program, None, [_emit(node.part, program, after), end])
    for _ in range(least):
        after = _emit(node.part, program, after)
    return after


def _append(
    program: list[Instruction], condition: CharacterSet | str | None, targets: Iterable[int]
) -> int:
    program.append((condition, tuple(targets)))
    return len(program) - 1
