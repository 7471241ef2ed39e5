"""A stream of tokens with a current position, for the parsers."""

from __future__ import annotations

from contextlib import contextmanager

from stretto_fidl.compiler.tokens import END, NAME, Token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto_fidl.compiler.source import Span
    from stretto_fidl.errors import CompileError

MAX_NESTING = 64
"""The maximum depth of nested layouts, types, and parentheses in constants."""


class TokenStream:
    """A stream of tokens with a current position.

    Args:
        tokens: The tokens of a file; the last one is the end of the file.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._depth = 0

    @property
    def current(self) -> Token:
        """The next token to be taken."""
        return self._tokens[self._position]

    def ahead(self, count: int) -> Token:
        """Return the token `count` places after the current one; at most the last token."""
        return self._tokens[min(self._position + count, len(self._tokens) - 1)]

    @property
    def previous(self) -> Token:
        """The token before the current one."""
        return self._tokens[max(self._position - 1, 0)]

    def since(self, first: Token) -> Span:
        """Return the span from `first` to the token before the current one."""
        return first.span.to(self.previous.span)

    def take(self) -> Token:
        """Take the current token and return it."""
        token = self.current
        if token.kind != END:
            self._position += 1
        return token

    def at(self, *kinds: str) -> bool:
        """Return whether the current token is of one of the kinds."""
        return self.current.kind in kinds

    def at_word(self, *words: str) -> bool:
        """Return whether the current token is one of the words."""
        return self.current.kind == NAME and self.current.text in words

    def accept(self, kind: str) -> Token | None:
        """Take the current token if it is of a certain kind; otherwise return None."""
        return self.take() if self.at(kind) else None

    def accept_word(self, word: str) -> Token | None:
        """Take the current token if it is a certain word; otherwise return None."""
        return self.take() if self.at_word(word) else None

    def expect(self, kind: str, where: str) -> Token:
        """Take the current token, which must be of a certain kind.

        Args:
            kind: One of the kinds in the module `tokens`.
            where: The end of the message "expected X …".

        Raises:
            CompileError: The current token is of another kind.
        """
        if not self.at(kind):
            raise self.unexpected(f"a {kind}" if kind == NAME else f"`{kind}`", where)
        return self.take()

    def expect_word(self, word: str, where: str) -> Token:
        """Take the current token, which must be a certain word.

        Raises:
            CompileError: The current token is something else.
        """
        if not self.at_word(word):
            raise self.unexpected(f"`{word}`", where)
        return self.take()

    def unexpected(self, expected: str, where: str) -> CompileError:
        """Return an error at the current token."""
        return self.current.span.error(f"found {self.current}, expected {expected} {where}")

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Count one more level of nested types while the `with` block runs.

        Raises:
            CompileError: The text has more than `MAX_NESTING` levels.
        """
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self.current.span.error(
                f"more than {MAX_NESTING} levels of nesting: give the inner types names"
            )
        yield
        self._depth -= 1
