"""Tests the comparison of IR with golden files, using golden files of this project.

`fidl_support.goldens` compares with the golden files of Fuchsia's FIDL compiler.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fidl_support import goldens as fidl_goldens
from stretto_fidl.compiler import compile_files

TYPES = "library demo.types;\ntype Name = struct { text string:8; };\n"
GREETER = """\
library demo.greeter;
using demo.types;
protocol Greeter {
    strict Greet(resource struct { name demo.types.Name; me client_end:Greeter; }) -> ();
};
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "types.test.fidl").write_text(TYPES)
    (tmp_path / "greeter").mkdir()
    (tmp_path / "greeter" / "main.test.fidl").write_text(GREETER)
    ir = compile_files(
        [tmp_path / "greeter" / "main.test.fidl"], dependencies=[tmp_path / "types.test.fidl"]
    )
    write(tmp_path, ir)
    return tmp_path


def write(folder: Path, ir: dict[str, Any]) -> None:
    (folder / "greeter.json.golden").write_text(json.dumps(ir))


def read(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "greeter.json.golden").read_text()))


def verdict(folder: Path) -> tuple[str, str]:
    suite = fidl_goldens.Suite(folder, [])
    (golden,) = suite.goldens
    return fidl_goldens.compare(suite, golden)


def test_ir_equal_to_its_golden_passes(suite: Path) -> None:
    assert verdict(suite) == ("passed", "")


def test_ir_different_from_its_golden_fails_with_the_first_difference(suite: Path) -> None:
    golden = read(suite)
    golden["protocol_declarations"][0]["methods"][0]["ordinal"] += 1
    write(suite, golden)
    result, reason = verdict(suite)
    assert result == "failed"
    assert reason.startswith("ir.protocol_declarations[0].methods[0].ordinal:")


def test_comparison_fails_if_the_golden_has_its_keys_in_another_order(suite: Path) -> None:
    golden = read(suite)
    golden["name"] = golden.pop("name")
    write(suite, golden)
    assert verdict(suite)[0] == "failed"


def test_goldens_of_older_compilers_pass(suite: Path) -> None:
    def older(node: Any) -> Any:
        if isinstance(node, list):
            return [older(each) for each in node]
        if not isinstance(node, dict):
            return node
        node = {key: older(value) for key, value in node.items() if key != "deprecated"}
        if node.get("kind_v2") == "endpoint":
            role, name = node.pop("role"), node.pop("protocol")
            assert role == "client"
            del node["kind_v2"]
            return {"kind": "identifier", "identifier": name, **node}
        if "has_request" in node:
            del node["kind"]
        return {"kind" if key == "kind_v2" else key: value for key, value in node.items()}

    write(suite, older(read(suite)) | {"available": {"fuchsia": "LEGACY"}})
    assert verdict(suite) == ("passed", "")


def test_goldens_with_version_constants_of_64_bits_pass(suite: Path) -> None:
    path = suite / "greeter" / "main.test.fidl"
    path.write_text(f"@available(added=1)\n{path.read_text()}")
    types = suite / "types.test.fidl"
    ir = compile_files([path], dependencies=[types])
    (argument,) = ir["maybe_attributes"][0]["arguments"]
    argument["type"] = "uint64"
    write(suite, ir)
    assert verdict(suite) == ("passed", "")
    argument["value"]["value"] = "2"
    write(suite, ir)
    assert verdict(suite)[0] == "failed"


def test_golden_without_definitions_is_unsupported(suite: Path) -> None:
    (suite / "types.test.fidl").unlink()
    assert verdict(suite) == ("unsupported", "no definitions of demo.types")


def test_golden_comparison_prints_how_often_each_result_occurred(
    suite: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["fidl_goldens.py", str(suite), "-v"])
    assert fidl_goldens.main() == 0
    assert capsys.readouterr().out == (
        "passed       greeter.json.golden\n1 passed, 0 failed, 0 unsupported\n"
    )
