from __future__ import annotations

import json

import pytest

from stretto.cli.main import main

GREETER = """\
library demo.greeter;

using demo.types;

protocol Greeter {
    @trace("greeter")
    Greet(struct { name demo.types.Name; }) -> (struct { text string; });
};
"""
TYPES = "library demo.types;\nalias Name = string:32;\n"


@pytest.fixture
def files(tmp_path):
    greeter, types = tmp_path / "greeter.fidl", tmp_path / "types.fidl"
    greeter.write_text(GREETER)
    types.write_text(TYPES)
    return str(greeter), str(types)


def test_ir_is_written_to_a_file(files, tmp_path):
    greeter, types = files
    out = tmp_path / "greeter.json"
    assert main(["fidl", "compile", greeter, "--dep", types, "--json", str(out)]) == 0
    ir = json.loads(out.read_text())
    assert ir["name"] == "demo.greeter"
    assert [dep["name"] for dep in ir["library_dependencies"]] == ["demo.types"]


def test_ir_is_written_to_standard_output(files, capsys):
    _, types = files
    assert main(["fidl", "compile", types, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["declaration_order"] == ["demo.types/Name"]


def test_compile_without_an_output_prints_nothing(files, capsys):
    assert main(["fidl", "compile", files[1]]) == 0
    assert capsys.readouterr().out == ""


def test_compile_error_has_its_place_and_a_caret(tmp_path, capsys):
    path = tmp_path / "a.fidl"
    path.write_text("library a;\n\ntype T = struct {\n\tx Missing;\n};\n")
    assert main(["fidl", "compile", str(path)]) == 1
    assert capsys.readouterr().err == (
        f"stretto: {path}:4:4: cannot find `Missing` in library `a`\n\tx Missing;\n\t  ^\n"
    )


def test_available_option_selects_the_version_of_the_library(tmp_path, capsys):
    path = tmp_path / "a.fidl"
    path.write_text(
        "@available(added=1)\nlibrary a;\n@available(added=2)\ntype T = struct {};\n"
        "@available(removed=2)\ntype U = struct {};\n"
    )
    assert main(["fidl", "compile", str(path), "--available", "a:1", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["declarations"] == {"a/U": "struct"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "choose from compile"),
        (["compile"], "--help"),
        (["compile", "a.fidl", "--available", "x"], "PLATFORM:VERSION"),
    ],
)
def test_invalid_arguments_of_compile_are_refused(arguments, message, capsys):
    assert main(["fidl", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_unreadable_and_unwritable_files_are_errors(files, tmp_path, capsys):
    assert main(["fidl", "compile", str(tmp_path / "none.fidl")]) == 1
    assert "cannot read" in capsys.readouterr().err
    assert main(["fidl", "compile", files[1], "--json", str(tmp_path / "no" / "x")]) == 1
    assert "can't write" in capsys.readouterr().err


def test_help_lists_the_subcommands_of_fidl(capsys):
    assert main(["fidl", "--help"]) == 0
    assert "stretto fidl compile" in capsys.readouterr().out
    assert main(["fidl"]) == 2
