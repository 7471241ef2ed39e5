from __future__ import annotations

import pytest

from fidl_support.source import compiled, error_of, named
from stretto_fidl.compiler import lexer
from stretto_fidl.compiler.lexer import lex
from stretto_fidl.compiler.source import SourceFile
from stretto_fidl.compiler.tokens import END
from stretto_fidl.errors import CompileError


def words(text: str) -> list[str]:
    return [token.text for token in lex(SourceFile("x", text)) if token.kind != END]


def test_text_is_split_into_tokens() -> None:
    assert words("type A=struct{b uint8;};") == [
        *["type", "A", "=", "struct", "{", "b", "uint8", ";", "}", ";"]
    ]
    assert words("-> -1 0x1F 1.5e-3 a.b // comment\n//// too\n/// doc") == [
        *["->", "-1", "0x1F", "1.5e-3", "a", ".", "b", "/// doc"]
    ]


def constant(literal: str) -> str:
    ir = compiled(f"const X string = {literal};")
    return str(named(ir, "X")["value"]["value"])


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (r'""', ""),
        (r'"a\tb\n\r"', "a\tb\n\r"),
        (r'"\"\\"', '"\\'),
        (r'"\u{e9}\u{1F600}"', "é😀"),
        ('"// no comment"', "// no comment"),
        ('"ünï"', "ünï"),
    ],
)
def test_string_literals_are_unescaped(literal: str, value: str) -> None:
    assert constant(literal) == value


@pytest.mark.parametrize(
    ("literal", "reason", "column"),
    [
        (r'"\q"', "invalid escape sequence", 19),
        (r'"\u{}"', "one to six", 19),
        (r'"\u{1234567}"', "one to six", 19),
        (r'"\u{110000}"', "isn't a code point", 19),
        (r'"\u{D800}"', "isn't a code point", 19),
        ('"a\tb"', "control character", 20),
        ('"open', "closing quote", 18),
        ("$", "invalid character '$'", 18),
        ("X_", "may not end with an underscore", 18),
    ],
)
def test_malformed_tokens_are_refused_with_their_place(
    literal: str, reason: str, column: int
) -> None:
    error = error_of(f"const X string = {literal};")
    assert reason in error.reason
    assert (error.line, error.column) == (2, column)


def test_huge_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexer, "MAX_FILE_LENGTH", 10)
    with pytest.raises(CompileError, match="longer than 10"):
        lex(SourceFile("x", " " * 11))
