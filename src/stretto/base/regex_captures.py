"""Regular expressions whose groups are captured, in time linear in the text.

All alternatives advance together, as in `regex`; each is a thread with captures of its own. The
threads at a place of the text are in the order in which `re` would try them. If two threads reach
one instruction, only the first one continues. So the first thread at the end has the captures that
`re` finds, without backtracking. (A Pike VM; R. Cox, "Regular Expression Matching: the Virtual
Machine Approach".)

Matching n characters takes at most n * (number of instructions) steps of about a microsecond each.
There is one difference from `re`: if a repetition matches an empty text several times, a group in
it may capture another one of these empty texts.
"""

from __future__ import annotations

from stretto.base.character_set import CharacterSet
from stretto.base.regex import holds
from stretto.base.regex_program import MATCH, Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final, TypeAlias

    Captures: TypeAlias = tuple[int, ...]
    """Begin and end of each group, -1 if it didn't match; first those of the whole match."""
    Threads: TypeAlias = list[tuple[int, Captures]]

MAX_PASSES: Final = 16
"""The largest number of scans of the text by `find_all`."""


class CaptureRegex:
    """A compiled regular expression with groups.

    Args:
        pattern: In the syntax of `regex_syntax`.

    Raises:
        ConfigError: The pattern is malformed, too large, or uses unsupported syntax.

    Attributes:
        groups: The number of groups.
    """

    __slots__ = ("_program", "_start", "groups")

    def __init__(self, pattern: str) -> None:
        program = Program(pattern, captures=True)
        self._program, self._start = program.instructions, program.start
        self.groups = program.groups

    def full_match(self, text: str) -> Captures | None:
        """Match the whole text; None if it doesn't match."""
        threads = self._threads_at(text, 0, [(self._start, self._no_captures(0))])
        for at, character in enumerate(text):
            if not threads:
                return None
            threads = self._step(text, at, character, threads)
        found = next((captures for position, captures in threads if position == MATCH), None)
        return found and (found[0], len(text), *found[2:])

    def find_all(self, text: str) -> Iterator[Captures]:
        """Yield the leftmost matches from left to right; they don't overlap.

        After an empty match the search continues at the same place, for a match that isn't empty.

        A search may scan the whole remaining text and then return a short match. If all searches
        together would need more than MAX_PASSES scans of the text, the remaining text counts as one
        match of all groups.
        """
        left = MAX_PASSES * (len(text) + 1)
        found, left = self._search(text, 0, -1, left)
        while found is not None:
            yield found
            begin, end = found[:2]
            if left < 0:
                yield (end, len(text)) * (self.groups + 1)
                return
            found, left = self._search(text, end, end if begin == end else -1, left)

    def _search(
        self, text: str, at: int, not_empty_at: int, left: int
    ) -> tuple[Captures | None, int]:
        found: Captures | None = None
        threads: Threads = []
        while True:
            if found is None:
                # A match may begin at this place. It has a lower priority than earlier beginnings.
                threads = [*threads, (self._start, self._no_captures(at))]
            threads = self._threads_at(text, at, threads)
            for order, (position, captures) in enumerate(threads):
                if position == MATCH and not captures[0] == at == not_empty_at:
                    found = (captures[0], at, *captures[2:])
                    threads = threads[:order]  # Later alternatives have a lower priority.
                    break
            left -= 1
            if at == len(text) or (found and not threads):
                return found, left
            threads = self._consume(text[at], threads)
            at += 1

    def _no_captures(self, begin: int) -> Captures:
        return (begin, -1) + (-1, -1) * self.groups

    def _step(self, text: str, at: int, character: str, threads: Threads) -> Threads:
        return self._threads_at(text, at + 1, self._consume(character, threads))

    def _consume(self, character: str, threads: Threads) -> Threads:
        following: Threads = []
        for position, captures in threads:
            condition, targets = self._program[position]
            if isinstance(condition, CharacterSet) and character in condition:
                following.append((targets[0], captures))
        return following

    def _threads_at(self, text: str, at: int, threads: Threads) -> Threads:
        """Follow all instructions that consume no character; keep the order of the threads."""
        before, following = text[max(at - 1, 0) : at], text[at : at + 1]
        reached: set[int] = set()
        out: Threads = []
        waiting = threads[::-1]
        while waiting:
            position, captures = waiting.pop()
            if position in reached:
                continue
            reached.add(position)
            condition, targets = self._program[position]
            if isinstance(condition, CharacterSet) or position == MATCH:
                out.append((position, captures))
                continue
            if isinstance(condition, int):
                captures = (*captures[:condition], at, *captures[condition + 1 :])
            elif isinstance(condition, str) and not holds(condition, before, following):
                continue
            waiting += [(target, captures) for target in reversed(targets)]
        return out
