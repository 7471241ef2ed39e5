"""The scripts in tools/ report correct results."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.sources import ROOT
from tools.bench_table import cell
from tools.ci_summary import last_lines, python_lines, repeated_tests, summarize
from tools.requirements import requirements

PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]

JUNIT = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"/>
<testcase name="c"><failure/></testcase>
<testcase name="d"><skipped/></testcase>
</testsuite></testsuites>"""


def test_ci_summary_adds_up_results_of_all_steps(tmp_path: Path) -> None:
    (tmp_path / "python-3.12.xml").write_text(JUNIT)
    (tmp_path / "steps.txt").write_text("failed python-3.12\nok lint\nfailed wheels\n")
    total = summarize(tmp_path)
    assert (total["passed"], total["failed"], total["skipped"]) == (3, 2, 1)


def test_ci_summary_has_a_line_for_each_python(tmp_path: Path) -> None:
    (tmp_path / "python-3.12.xml").write_text(JUNIT)
    steps = "failed python-3.12\nfailed python-3.13\nskipped python-3.14\nok lint\n"
    (tmp_path / "steps.txt").write_text(steps)
    assert python_lines(tmp_path) == [
        "python-3.12: 2 passed, 1 failed, 1 skipped",
        "python-3.13: failed",
        "python-3.14: skipped",
    ]
    total = summarize(tmp_path)
    assert (total["passed"], total["failed"], total["skipped"]) == (3, 2, 2)


def test_ci_summary_counts_a_failed_step_with_passed_tests_as_a_failure(tmp_path: Path) -> None:
    (tmp_path / "native.xml").write_text("<testsuite><testcase name='a'/></testsuite>")
    (tmp_path / "steps.txt").write_text("failed native\n")
    total = summarize(tmp_path)
    assert (total["passed"], total["failed"]) == (1, 1)


def test_ci_summary_shows_the_end_of_what_a_failed_step_printed(tmp_path: Path) -> None:
    printed = [f"line {number}" for number in range(100)]
    (tmp_path / "smoke.log").write_text("\n".join([*printed, "SKIPPED [1] a: b", "the reason"]))
    assert last_lines(tmp_path, "smoke") == [*printed[-29:], "the reason"]
    assert last_lines(tmp_path, "wheels") == []


def test_ci_summary_names_tests_that_failed_by_what_they_did_when_repeated(tmp_path: Path) -> None:
    (tmp_path / "python-3.12.xml").write_text(JUNIT)
    (tmp_path / "steps.txt").write_text("ok python-3.12\n")
    again = tmp_path / "again" / "python-3.12.xml"
    again.parent.mkdir()
    again.write_text("<testsuite><testcase name='c'/></testsuite>")
    total = summarize(tmp_path)
    assert (total["passed"], total["failed"], total["skipped"]) == (3, 0, 1)
    assert repeated_tests(tmp_path, "passed") == ["python-3.12 ::c"]
    again.write_text(again.read_text().replace("/><", "><failure/></testcase><"))
    assert summarize(tmp_path)["failed"] == 1
    assert repeated_tests(tmp_path, "passed") == []
    assert repeated_tests(tmp_path, "failed") == ["python-3.12 ::c"]


def test_requirements_of_extras_are_read_without_installation() -> None:
    assert any(line.startswith("pytest>=") for line in requirements(["build", "test"]))
    with pytest.raises(KeyError):
        requirements(["nothing"])


def test_development_extra_contains_the_extras_of_make_test() -> None:
    assert requirements(["dev"]) == ["stretto[build,lint,test]"]


def test_both_distributions_have_the_same_version() -> None:
    """The distributions are released together: stretto-fidl requires the same minor version."""
    ours, fidl = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
        for folder in ("", "stretto-fidl")
    )
    assert ours["version"] == fidl["version"]
    minor = ours["version"].rpartition(".")[0]
    assert fidl["dependencies"] == [f"stretto=={minor}.*"]
    for distribution in (ours, fidl):
        assert distribution["license"] == "Apache-2.0"
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "stretto-fidl" / "LICENSE").read_bytes()


@pytest.mark.parametrize(("value", "text"), [(1.23456, "1.23"), (None, ""), ("ns", "ns"), (7, "7")])
def test_bench_table_formats_figures_with_three_digits(value: object, text: str) -> None:
    assert cell(value) == text


def test_interpreters_listed_by_the_tool_pythons_can_be_executed() -> None:
    lines = subprocess.run(
        [ROOT / "tools" / "pythons"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert [line.split()[0] for line in lines] == PYTHONS
    for version, *python in (line.split() for line in lines):
        if python:
            command = [*python[1:], python[0], "--version"]
            said = subprocess.check_output(command, text=True, cwd=ROOT)
            assert said.startswith(f"Python {version}.")


def test_tools_pythons_lists_all_versions_if_no_interpreter_is_installed(tmp_path: Path) -> None:
    for tool in ("bash", "env", "dirname"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    (tmp_path / "tools").mkdir()
    pythons = shutil.copy(ROOT / "tools" / "pythons", tmp_path / "tools")
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "PYENV_ROOT": str(tmp_path)}
    output = subprocess.check_output([pythons], text=True, env=environment)
    assert output.split() == PYTHONS


def test_tools_fuzz_runs_fuzzers_and_reports_a_crash(tmp_path: Path) -> None:
    def fuzzer(name: str, code: str) -> None:
        path = tmp_path / name
        path.write_text(f"#!{sys.executable}\n{code}\n")
        path.chmod(0o755)

    run = [str(ROOT / "tools" / "fuzz"), str(tmp_path), "5"]
    fuzzer("fuzz_good", "import sys; assert '-runs=5' in sys.argv")
    assert subprocess.run(run, check=False, capture_output=True).returncode == 0
    fuzzer("fuzz_bad", "raise SystemExit(1)")
    result = subprocess.run(run, check=False, capture_output=True, text=True)
    assert result.returncode == 1
    assert "FAILED: fuzz_bad" in result.stdout
