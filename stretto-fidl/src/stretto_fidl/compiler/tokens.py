"""The words of the language."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.source import Span

NAME = "name"
NUMBER = "number"
STRING = "string"
DOC = "doc comment"
END = "end of file"
# All other kinds are their own text: `{`, `->`.


class Token:
    """A word and its place.

    Attributes:
        kind: One of this module's, or the punctuation itself.
        text: As written.
        span: Where.
    """

    __slots__ = ("kind", "span", "text")

    def __init__(self, kind: str, text: str, span: Span) -> None:
        self.kind = kind
        self.text = text
        self.span = span

    def __str__(self) -> str:
        return self.kind if self.kind == END else f"`{self.text}`"
