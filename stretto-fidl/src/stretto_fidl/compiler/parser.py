"""Parses a file in either syntax.

The first construct that exists in only one of the syntaxes decides the syntax of the file.
`deprecated_syntax;` at the top of a file selects the old syntax. A file without such a construct
has the syntax of the other files of its library.
"""

from __future__ import annotations

from stretto_fidl.compiler.lexer import lex
from stretto_fidl.compiler.parser_new import LAYOUTS, NewParser
from stretto_fidl.compiler.parser_old import OldParser
from stretto_fidl.compiler.token_stream import TokenStream
from stretto_fidl.compiler.tokens import DOC, END, NAME, NUMBER
from stretto_fidl.errors import CompileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto_fidl.compiler.source import SourceFile
    from stretto_fidl.compiler.syntax_tree import File
    from stretto_fidl.compiler.tokens import Token

_MODIFIERS = ("strict", "flexible", "resource")
_LONGEST_PARAMETER = 200
"""The maximum number of tokens that are read to detect the syntax of a parameter."""


def parse(source: SourceFile) -> File:
    """Return the syntax tree of one file.

    Raises:
        CompileError: The text isn't valid FIDL.
    """
    return parse_all([source])[0]


def parse_all(sources: Iterable[SourceFile]) -> list[File]:
    """Return the syntax trees of files, which may belong to several libraries.

    Raises:
        CompileError: A file isn't valid FIDL; `errors` has the mistakes of all files.
    """
    parsed: list[tuple[list[Token], bool | None, File]] = []
    errors: list[CompileError] = []
    for source in sources:
        try:
            tokens = lex(source)
            is_old = is_old_syntax(tokens)
            parsed.append((tokens, is_old, _parse(tokens, bool(is_old))))
        except CompileError as error:
            errors.append(error)
    if errors:
        errors[0].errors = errors
        raise errors[0]
    old = {file.library for _, is_old, file in parsed if is_old}
    return [
        _parse(tokens, True) if is_old is None and file.library in old else file
        for tokens, is_old, file in parsed
    ]


def _parse(tokens: list[Token], is_old: bool) -> File:
    parser = OldParser if is_old else NewParser
    return parser(TokenStream(tokens)).file()


def is_old_syntax(tokens: list[Token]) -> bool | None:
    """Return whether a file has the syntax before RFC-0050; None if it may have either."""
    words = [token for token in tokens if token.kind != DOC]
    depth = 0
    for position, token in enumerate(words):
        verdict = _verdict(words, position, depth)
        if verdict is not None:
            return verdict
        depth += (token.kind == "{") - (token.kind == "}")
    return None


def _verdict(words: list[Token], position: int, depth: int) -> bool | None:
    """Return True if only the old syntax has a construct, False if only the new syntax has it.

    Return None if both syntaxes have it.
    """
    here = words[position]
    if here.kind in ("@", "[", "?"):
        return here.kind != "@"
    if depth > 0:
        return _member_verdict(words, position)
    if here.kind == NAME and _starts_statement(words, position):
        return _statement_verdict(words, position)
    return None


def _statement_verdict(words: list[Token], position: int) -> bool | None:
    here, following, third = (_word(words, position + offset) for offset in range(3))
    if here.text in ("deprecated_syntax", *LAYOUTS, "xunion"):
        return True
    if here.text in ("open", "ajar", "closed", "type"):
        return False
    if here.text == "using" and third.kind == "=":
        return True
    if here.text == "const":
        return _const_verdict(following, third)
    return _service_verdict(words, position) if here.text == "service" else None


def _word(words: list[Token], position: int) -> Token:
    return words[min(position, len(words) - 1)]


def _starts_statement(words: list[Token], position: int) -> bool:
    for _ in _MODIFIERS:
        if position > 0 and words[position - 1].text in _MODIFIERS:
            position -= 1
    return position == 0 or words[position - 1].kind in (";", "]")


_BUILTINS = {"bool", "string", "float32", "float64"} | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def _const_verdict(first: Token, second: Token) -> bool | None:
    if second.kind in (".", ":"):
        return True  # the first word is a type, so the syntax is old
    if (first.text in _BUILTINS) != (second.text in _BUILTINS):
        return first.text in _BUILTINS
    return None


def _member_verdict(words: list[Token], position: int) -> bool | None:
    """Return True if only the old syntax allows a protocol's member, False if only the new syntax
    does.

    Return None if both syntaxes allow the member.
    """
    here, after = words[position], _word(words, position + 1)
    if here.kind == "(":
        return _parameters_verdict(words, position)
    is_method = after.kind == "->" or _word(words, position + 2).kind == "("
    return False if here.text in ("strict", "flexible") and is_method else None


def _parameters_verdict(words: list[Token], position: int) -> bool | None:
    """As `_verdict`: True for `(T name` and `(vector<T> name`, False for `(struct {`."""
    depth = 0
    for offset in range(1, _LONGEST_PARAMETER):
        word = _word(words, position + offset)
        depth += (word.kind == "<") - (word.kind == ">")
        if word.kind in ("{", "}", ";", END):
            return False if word.kind == "{" else None
        if depth == 0 and word.kind in (")", ","):
            last, before = words[position + offset - 1], words[position + offset - 2]
            if last.kind != NAME:
                return None if offset == 1 else False
            return before.kind in (NAME, NUMBER, ">", "?")
    return None


def _service_verdict(words: list[Token], position: int) -> bool | None:
    """As `_verdict`: True for a member `P name;`, False for `name client_end:P;`."""
    if _word(words, position + 3).kind != NAME:
        return None
    rest = (_word(words, position + offset).kind for offset in range(4, 40))
    return ":" not in iter(lambda: next(rest, ";"), ";")
