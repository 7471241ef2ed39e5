from __future__ import annotations

import ast

import pytest

from stretto.base.errors import CommandError
from stretto.cli.verb_parser import VerbParser, port_number
from tests.support.sources import PACKAGE


def test_error_message_names_the_verb_and_its_help_option() -> None:
    parser = VerbParser("paint", "Paints.")
    with pytest.raises(
        CommandError, match=r"^paint: .*`stretto paint --help` shows how\.$"
    ) as error:
        parser.parse_args(["--colour"])
    assert error.value.exit_code == 2


def test_error_has_the_given_exit_code() -> None:
    with pytest.raises(CommandError) as error:
        VerbParser("paint", "Paints.", exit_code=1).parse_args(["--colour"])
    assert error.value.exit_code == 1


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        (["--size"], ""),
        (["--colours"], " Did you mean --colour?"),
        (["--colours=red", "--x"], " Did you mean --colour?"),
        (["--coat", "mat"], " Did you mean matt?"),
        (["--coat", "other"], ""),
    ],
)
def test_error_of_an_unknown_option_or_choice_has_the_nearest_one(
    words: list[str], suggested: str
) -> None:
    parser = VerbParser("paint", "Paints.")
    parser.add_argument("--colour")
    parser.add_argument("--coat", choices=("matt", "gloss"))
    with pytest.raises(CommandError) as error:
        parser.parse_args(words)
    message = str(error.value)
    assert message.endswith(f".{suggested} `stretto paint --help` shows how.")
    assert message.lower().count("mean") == bool(suggested)


@pytest.mark.parametrize("text", ["-5us", "-.5s", "-5"])
def test_negative_value_is_parsed_as_the_value_of_its_option(text: str) -> None:
    parser = VerbParser("paint", "Paints.")
    parser.add_argument("--dry")
    parser.add_argument("-n")
    assert parser.parse_args(["--dry", text, "-n", text]).dry == text


def test_abbreviated_option_is_refused() -> None:
    parser = VerbParser("paint", "Paints.")
    parser.add_argument("--colour")
    with pytest.raises(CommandError):
        parser.parse_args(["--col", "red"])


def test_help_keeps_line_breaks_and_shows_the_epilog() -> None:
    parser = VerbParser("paint", "One\n  two", usage="stretto paint WALL", epilog="Three\n  four")
    shown = parser.format_help()
    assert shown.startswith("usage: stretto paint WALL\n\nOne\n  two\n")
    assert shown.endswith("Three\n  four\n")


@pytest.mark.parametrize("text", ["-1", "65536", "x", ""])
def test_port_outside_its_range_is_refused(text: str) -> None:
    parser = VerbParser("paint", "Paints.")
    parser.add_argument("--port", type=port_number)
    with pytest.raises(CommandError, match="invalid port value"):
        parser.parse_args([f"--port={text}"])


def test_all_verbs_use_the_same_parser_class() -> None:
    subclasses = [
        (path.name, node.name)
        for path in (PACKAGE / "cli").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).endswith(("ArgumentParser", "VerbParser")) for base in node.bases)
    ]
    assert subclasses == [("verb_parser.py", "VerbParser")]
