"""Other distributions add verbs to the command by entry points."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from stretto.base.errors import CommandError
from stretto.cli import verbs
from stretto.cli.main import main

Install = Callable[..., None]


def greet(arguments: Sequence[str]) -> int:
    """Greet somebody.

    The help shows only the first line.
    """
    print("hello", *arguments)
    return 7


def broken(_arguments: Sequence[str]) -> int:
    raise CommandError("greet: there is nobody.", 3)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that makes its arguments (verb=value) the only installed entry points."""
    module = ModuleType("some_verbs")
    vars(module).update(greet=greet, broken=broken)
    monkeypatch.setitem(sys.modules, "some_verbs", module)

    def install(**values: str) -> None:
        entries = [EntryPoint(name, value, verbs.GROUP) for name, value in values.items()]

        def entry_points(**query: Any) -> list[EntryPoint]:
            assert query == {"group": "stretto.verbs"}
            return entries

        monkeypatch.setattr("importlib.metadata.entry_points", entry_points)

    return install


def test_added_verb_gets_the_arguments_that_follow_it(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(greet="some_verbs:greet")
    assert main(["greet", "--help", "you"]) == 7
    assert capsys.readouterr().out == "hello --help you\n"


def test_help_shows_the_first_line_of_an_added_verb(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(greet="some_verbs:greet", gone="no_such_module:run")
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "  stretto greet      Greet somebody.\n" in out
    assert "  stretto gone       gone: the verb can't be loaded: No module named" in out


def test_command_error_of_an_added_verb_is_printed_and_sets_the_exit_code(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(greet="some_verbs:broken")
    assert main(["greet"]) == 3
    assert capsys.readouterr().err == "stretto: greet: there is nobody.\n"


def test_added_verb_never_replaces_a_verb_of_stretto(install: Install) -> None:
    install(record="some_verbs:greet")
    assert "record" not in verbs.added_verbs()
    assert verbs.load_verb("record") is not greet


@pytest.mark.parametrize("value", ["no_such_module:run", "some_verbs:none", "some_verbs:greet.x"])
def test_error_of_a_verb_that_cannot_be_loaded_names_what_to_install(
    install: Install, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    install(greet=value)
    assert main(["greet"]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("stretto: greet: the verb can't be loaded: ")
    assert printed.endswith(f"Install {value} again.\n")


def test_first_of_two_entry_points_for_one_verb_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entries = [EntryPoint("greet", f"some_verbs:{name}", verbs.GROUP) for name in ("b", "a")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: entries)
    assert verbs.added_verbs()["greet"].value == "some_verbs:a"


def test_unknown_verb_is_an_error_that_lists_added_verbs(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(greet="some_verbs:greet")
    assert main(["gret"]) == 2
    assert capsys.readouterr().err.endswith(", fidl, greet. Did you mean greet?\n")


def test_fidl_without_its_distribution_prints_what_to_install(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install()
    assert main(["fidl", "--help"]) == 1
    assert capsys.readouterr().err == (
        "stretto: fidl: this verb comes with the distribution stretto-fidl, which is not "
        "installed: run `pip install stretto-fidl`.\n"
    )
    assert main(["--help"]) == 0
    assert "(needs `pip install stretto-fidl`)" in capsys.readouterr().out


def test_verbs_of_stretto_run_without_reading_entry_points(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verbs, "added_verbs", lambda: pytest.fail("read"))
    with pytest.raises(SystemExit):
        main(["record", "--help"])
    assert "stretto record" in capsys.readouterr().out
