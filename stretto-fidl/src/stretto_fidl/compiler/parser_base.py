"""Parses the parts that both syntaxes share: library, imports, doc comments, constants, names."""

from __future__ import annotations

import re

from stretto_fidl.compiler.lexer import unescape
from stretto_fidl.compiler.syntax_tree import (
    Attribute,
    AttributeArgument,
    Constant,
    Declaration,
    File,
    Identifier,
    Literal,
    Modifier,
    Or,
    Reference,
    Using,
)
from stretto_fidl.compiler.tokens import DOC, END, NAME, NUMBER, STRING, Token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.token_stream import TokenStream

_LIBRARY_PART = re.compile("[a-z][a-z0-9]*")
MAX_ORDINAL = (1 << 32) - 1


class ParserBase:
    """Parses one file.

    A subclass for each syntax parses attributes and declarations.

    Args:
        tokens: The tokens of the file.
    """

    def __init__(self, tokens: TokenStream) -> None:
        self._tokens = tokens
        self._versions: list[AttributeArgument] = []

    def file(self) -> File:
        """Parse the whole file.

        Raises:
            CompileError: The file isn't valid in the parser's syntax.
        """
        attributes = self._attributes()
        if self._tokens.at_word("deprecated_syntax"):
            self._tokens.take()
            self._tokens.expect(";", "after `deprecated_syntax`")
        self._tokens.expect_word("library", "at the top of the file, then its name")
        library = self._library_name()
        self._tokens.expect(";", "after the library's name")
        result = File(library.span, str(library), attributes, [], [], self._versions)
        while not self._tokens.at(END):
            self._statement(result)
        return result

    def _statement(self, file: File) -> None:
        attributes = self._attributes()
        if self._tokens.at_word("using") and not self._is_old_alias():
            if attributes:
                raise attributes[0].span.error("`using` takes neither attributes nor doc comments")
            if file.declarations:
                raise self._tokens.current.span.error(
                    "`using` must come before all declarations: move it to the top of the file"
                )
            file.using.append(self._using())
        else:
            file.declarations.append(self._declaration(attributes))
        self._tokens.expect(";", "at the end of the declaration")

    def _is_old_alias(self) -> bool:
        return self._tokens.ahead(2).kind == "="

    def _using(self) -> Using:
        self._tokens.take()
        library = self._library_name()
        alias = None
        if self._tokens.accept_word("as"):
            alias = self._tokens.expect(NAME, "after `as`").text
        return Using(library.span, str(library), alias)

    def _library_name(self) -> Reference:
        name = self._reference("as the library's name")
        for part in name.parts:
            if not _LIBRARY_PART.fullmatch(part):
                raise name.span.error(
                    f"invalid part `{part}` of a library name: "
                    "use lower case letters and digits, a letter first"
                )
        return name

    def _attributes(self) -> list[Attribute]:
        raise NotImplementedError

    def _declaration(self, attributes: list[Attribute]) -> Declaration:
        raise NotImplementedError

    def _name(self, where: str) -> Token:
        return self._tokens.expect(NAME, where)

    def _reference(self, where: str) -> Reference:
        first = self._name(where)
        parts = [first.text]
        while self._tokens.accept("."):
            parts.append(self._name("after the dot").text)
        return Reference(self._tokens.since(first), tuple(parts))

    def _modifiers(self, *known: str) -> list[Modifier]:
        found: list[Modifier] = []
        while self._tokens.at_word(*known) and self._is_modifier():
            token = self._tokens.take()
            if any(token.text == other.name and not other.versions for other in found):
                raise token.span.error(f"`{token.text}` is here twice: remove one")
            found.append(Modifier(token.span, token.text, self._modifier_versions()))
        return found

    def _is_modifier(self) -> bool:
        """Return whether the current word, such as `strict`, is a modifier, not a method's name."""
        ahead = [self._tokens.ahead(count).kind for count in (1, 2, 3)]
        return ahead[0] in (NAME, "->") or ahead == ["(", NAME, "="]

    def _modifier_versions(self) -> list[AttributeArgument]:
        if not self._tokens.accept("("):
            return []
        found = [self._argument()]
        while self._tokens.accept(","):
            found.append(self._argument())
        self._tokens.expect(")", "after the modifier's versions")
        return found

    def _argument(self) -> AttributeArgument:
        first = self._tokens.current
        name = None
        if self._tokens.at(NAME) and self._tokens.ahead(1).kind == "=":
            name = self._tokens.take().text
            self._tokens.take()
        value = self._constant()
        argument = AttributeArgument(self._tokens.since(first), name, value)
        if name in ("added", "deprecated", "removed", "replaced"):
            self._versions.append(argument)
        return argument

    def _doc_comment(self) -> Attribute:
        first = self._tokens.current
        lines = []
        while self._tokens.at(DOC):
            lines.append(self._tokens.take().text.removeprefix("///").rstrip("\r") + "\n")
        span = self._tokens.since(first)
        literal = Literal(span, "string", span.text, "".join(lines))
        return Attribute(span, "doc", [AttributeArgument(span, None, literal)], is_doc=True)

    def _constant(self) -> Constant:
        first = self._tokens.current
        operands = [self._operand()]
        while self._tokens.accept("|"):
            operands.append(self._operand())
        return operands[0] if len(operands) == 1 else Or(self._tokens.since(first), operands)

    def _operand(self) -> Constant:
        tokens = self._tokens
        if tokens.accept("("):
            with tokens.nested():
                inside = self._constant()
            tokens.expect(")", "after the constant")
            return inside
        if tokens.at(NUMBER, STRING):
            return self._literal()
        if tokens.at_word("true", "false"):
            token = tokens.take()
            return Literal(token.span, "bool", token.text, token.text == "true")
        if not tokens.at(NAME):
            raise tokens.unexpected("a constant", "here: a literal or a name")
        reference = self._reference("here")
        return Identifier(reference.span, reference)

    def _literal(self) -> Literal:
        token = self._tokens.take()
        if token.kind == STRING:
            return Literal(token.span, "string", token.text, unescape(token.text, token.span))
        return Literal(token.span, "numeric", token.text)

    def _ordinal(self) -> tuple[int, Token]:
        if not self._tokens.at(NUMBER):
            raise self._tokens.unexpected("an ordinal", "before the member, such as `1:`")
        token = self._tokens.take()
        if not re.fullmatch("[0-9]{1,10}", token.text) or int(token.text) > MAX_ORDINAL:
            raise token.span.error(f"an ordinal is a decimal number up to {MAX_ORDINAL}")
        if int(token.text) == 0:
            raise token.span.error("ordinals start at 1")
        self._tokens.expect(":", "after the ordinal")
        return int(token.text), token
