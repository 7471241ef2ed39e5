"""Values of constants."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.syntax_tree import Constant


class Value:
    """A constant's value.

    Attributes:
        syntax: The node of the syntax tree.
        value: The value; an int if the constant is a member of an enum or bits.
        type: `string`, or the name of a primitive type.
        identifier: `library/NAME` or `library/Enum.MEMBER` if the constant is a name.
    """

    __slots__ = ("identifier", "syntax", "type", "value")

    def __init__(
        self,
        syntax: Constant,
        value: float | bool | str,
        type_: str,
        identifier: str | None = None,
    ) -> None:
        self.syntax = syntax
        self.value = value
        self.type = type_
        self.identifier = identifier

    @property
    def integer(self) -> int:
        """The value as an int. The constant must have been evaluated as an int."""
        assert isinstance(self.value, int)
        return self.value

    @property
    def text(self) -> str:
        """The text of the value in the IR."""
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        if isinstance(self.value, float):
            return f"{self.value:g}"
        return str(self.value)
