from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto_fidl.compiler import compile_sources

GREETER = """\
library demo.greeter;

@trace("all")
protocol Greeter {
    @trace("greeter")
    Greet(struct { name string; }) -> (struct { text string; });
};
"""


@pytest.fixture
def ir(tmp_path: Path) -> str:
    path = tmp_path / "greeter.json"
    path.write_text(json.dumps(compile_sources({"greeter.fidl": GREETER})))
    return str(path)


def test_module_and_stub_are_written(ir: str, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "gen"
    assert main(["fidl", "generate", ir, "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["demo_greeter.py", "demo_greeter.pyi"]
    use = (
        f"import sys; sys.path.insert(0, {str(out)!r})\n"
        "from stretto_fidl import codec\n"
        "from demo_greeter import Greeter\n"
        "greet = Greeter.BY_NAME['Greet']\n"
        "data, _ = codec.encode(greet.request(name='you'))\n"
        "print(codec.decode(greet.request, data), dict(greet.attributes))\n"
    )
    done = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, check=True)
    assert done.stdout == "GreeterGreetRequest(name='you') {'trace': 'greeter'}\n"


def test_option_strips_the_trace_attributes(ir: str, tmp_path: Path) -> None:
    plain = tmp_path / "plain.json"
    unannotated = "\n".join(line for line in GREETER.splitlines() if "@trace" not in line)
    plain.write_text(json.dumps(compile_sources({"greeter.fidl": unannotated})))
    one, other = tmp_path / "one", tmp_path / "other"
    assert main(["fidl", "generate", ir, "--out", str(one), "--trace=strip"]) == 0
    assert main(["fidl", "generate", str(plain), "--out", str(other)]) == 0
    for path in one.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "can't read"),
        ("{", "isn't JSON"),
        ("[]", "isn't the IR of a library"),
        ("{}", "isn't the IR of a library"),
    ],
)
def test_files_without_an_ir_are_refused(
    tmp_path: Path, capsys, text: str | None, message: str
) -> None:
    path = tmp_path / "a.json"
    if text is not None:
        path.write_text(text)
    assert main(["fidl", "generate", str(path)]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 5}, "no JSON IR"),
        ({"name": "/tmp/x/outside"}, "isn't a valid FIDL library name"),
        ({"name": "demo.greeter\nimport os"}, "isn't a valid FIDL library name"),
        ({"struct_declarations": [5]}, "no JSON IR"),
        (
            {"struct_declarations": [{"name": "demo.greeter/X: pass", "members": []}]},
            "isn't a valid FIDL name",
        ),
        ({"protocol_declarations": [{"name": "demo.greeter/P"}]}, "no JSON IR"),
    ],
)
def test_error_for_an_invalid_ir_has_one_line(
    ir: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict, message: str
) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(json.loads(Path(ir).read_text()) | change))
    out = tmp_path / "out"
    assert main(["fidl", "generate", str(broken), "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_deeply_nested_json_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 200_000)
    assert main(["fidl", "generate", str(deep)]) == 1
    assert "too deeply nested" in capsys.readouterr().err


def test_invalid_prefix_argument_is_refused(
    ir: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fidl", "generate", ir, "--out", str(tmp_path), "--prefix", "1 2"]) == 1
    assert "isn't a Python package name" in capsys.readouterr().err


def test_unwritable_folder_is_an_error(ir: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("")
    assert main(["fidl", "generate", ir, "--out", str(tmp_path / "file")]) == 1
    assert "can't write" in capsys.readouterr().err


def test_help_shows_the_generate_subcommand(capsys) -> None:
    assert main(["fidl", "--help"]) == 0
    assert "stretto fidl generate" in capsys.readouterr().out
