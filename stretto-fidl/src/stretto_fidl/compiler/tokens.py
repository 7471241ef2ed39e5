"""The tokens of the language."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.source import Span

NAME = "name"
NUMBER = "number"
STRING = "string"
DOC = "doc comment"
END = "end of file"
# The kind of a punctuation mark is its text, such as `{` or `->`.


class Token:
    """A token and its place.

    Attributes:
        kind: One of this module's constants, or the text of a punctuation mark.
        text: The text.
        span: The place.
    """

    __slots__ = ("kind", "span", "text")

    def __init__(self, kind: str, text: str, span: Span) -> None:
        self.kind = kind
        self.text = text
        self.span = span

    def __str__(self) -> str:
        return self.kind if self.kind == END else f"`{self.text}`"
