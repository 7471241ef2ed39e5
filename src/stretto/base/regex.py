"""Regular expressions of configs: compiled once, matched in time linear in the text.

The expression is chosen by the author of a config, the text by a producer, which may be hostile.
`re` tries alternatives one after the other, which takes exponential time for some expressions and
texts. Here all alternatives advance together, as in RE2::

    pattern --parse--> tree --emit--> program --full_match--> sets of program positions

A cache maps a set of positions and a character to the next set, so that most characters cost one
look-up. `regex_syntax` describes the syntax.
"""

from __future__ import annotations

from stretto.base.character_set import WORD, CharacterSet
from stretto.base.regex_program import MATCH, Program
from stretto.base.regex_syntax import BEGIN, END, WORD_BOUNDARY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TypeAlias

    State: TypeAlias = tuple[frozenset[int], str]
    """The current program positions, and the character before; "" at the start of the text."""

MAX_TEXT: Final = 256
"""The largest number of characters of a name."""
MAX_KNOWN_STEPS: Final = 2000
"""The largest number of cached steps; a full cache is emptied."""


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
        program = Program(pattern, captures=False)
        self._program, self._start = program.instructions, program.start
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
        return MATCH in self._reach(state, "")

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
            if isinstance(condition, str) and not holds(condition, before, following):
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
