"""Add up the results of a CI run: `total: 812 passed, 0 failed, 3 skipped`.

    python tools/ci_summary.py RESULTS_FOLDER

The folder holds JUnit files of test runs, and `steps.txt` with a line `ok NAME`, `failed NAME` or
`skipped NAME` for each step. The totals include all tests. They include a step only if it has no
JUnit file (`python-3.12.xml` for the step `python-3.12`), or if the step failed but none of its
tests did. Before the totals stands the end of the output (`NAME.log`) of each failed step.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

LAST_LINES = 30
"""How much of the output of a failed step is repeated."""


def outcomes(path: Path) -> dict[str, str]:
    """Return the result of each test of a JUnit file: `passed`, `failed` or `skipped`."""
    found = {}
    for case in ET.parse(path).iter("testcase") if path.exists() else ():
        children = {child.tag for child in case}
        failed = "failed" if children & {"failure", "error"} else "passed"
        name = f"{case.get('classname', '')}::{case.get('name')}"
        found[name] = "skipped" if "skipped" in children else failed
    return found


def repeated_tests(folder: Path, outcome: str) -> list[str]:
    """Return "RUN TEST" for each test that failed in a run and had `outcome` when repeated."""
    return [
        f"{path.stem} {name}"
        for path in sorted(folder.glob("again/*.xml"))
        for name, found in outcomes(path).items()
        if found == outcome
    ]


def counts_by_run(folder: Path) -> dict[str, Counter[str]]:
    """Return, for the name of each test run, the number of tests with each outcome."""
    return {
        path.stem: Counter((outcomes(path) | outcomes(folder / "again" / path.name)).values())
        for path in sorted(folder.glob("*.xml"))
    }


def steps(folder: Path) -> dict[str, str]:
    """Return the outcome of each step, by its name."""
    lines = (folder / "steps.txt").read_text().splitlines()
    return {name: outcome for outcome, name in (line.split(maxsplit=1) for line in lines)}


def summarize(folder: Path) -> Counter[str]:
    """Count all tests and steps of a run."""
    tests = counts_by_run(folder)
    total = sum(tests.values(), Counter[str]())
    for name, outcome in steps(folder).items():
        if outcome == "failed":
            total["failed"] += not tests.get(name, Counter())["failed"]
        else:
            total["passed" if outcome == "ok" else "skipped"] += name not in tests
    return total


def python_lines(folder: Path) -> list[str]:
    """Return one line for each CPython version, with the results of its tests."""
    tests = counts_by_run(folder)
    return [
        f"{name}: {counts(tests[name])}" if name in tests else f"{name}: {outcome}"
        for name, outcome in steps(folder).items()
        if name.startswith("python-")
    ]


def last_lines(folder: Path, name: str) -> list[str]:
    """Return the last lines that a step printed, without those of skipped tests."""
    path = folder / f"{name}.log"
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    return [line for line in lines if not line.startswith("SKIPPED")][-LAST_LINES:]


def counts(tests: Counter[str]) -> str:
    """Return the counts as text, such as `812 passed, 0 failed, 3 skipped`."""
    return f"{tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped"


if __name__ == "__main__":
    results = Path(sys.argv[1])
    for step, outcome in steps(results).items():
        if outcome == "failed":
            print(
                f"\n=== {step} failed; the end of its output:", *last_lines(results, step), sep="\n"
            )
    for test in repeated_tests(results, "passed"):
        print(f"FLAKY: {test} failed, and passed when run again")
    for test in repeated_tests(results, "failed"):
        print(f"FAILED: {test} failed twice")
    print(*python_lines(results), f"total: {counts(summarize(results))}", sep="\n")
