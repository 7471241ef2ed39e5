"""Add up a CI run for its last line: `total: 812 passed, 0 failed, 3 skipped`.

    python tools/ci_summary.py RESULTS_FOLDER

The folder holds JUnit files of test runs, and `steps.txt` with a line `ok NAME` or `failed NAME`
for each step. Each test is counted. A step is counted only if the folder has no JUnit file of its
name (`python-3.12.xml` for the step `python-3.12`), or if it failed without a failed test.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path


def outcomes(path: Path) -> dict[str, str]:
    """Return the result of each test of a JUnit file: `passed`, `failed` or `skipped`."""
    found = {}
    for case in ET.parse(path).iter("testcase") if path.exists() else ():
        children = {child.tag for child in case}
        failed = "failed" if children & {"failure", "error"} else "passed"
        name = f"{case.get('classname', '')}::{case.get('name')}"
        found[name] = "skipped" if "skipped" in children else failed
    return found


def flaky_tests(folder: Path) -> list[str]:
    """List the tests that failed in a run and passed in its rerun, with the run's name."""
    return [
        f"{path.stem} {name}"
        for path in sorted(folder.glob("again/*.xml"))
        for name, outcome in outcomes(path).items()
        if outcome == "passed"
    ]


def summarize(folder: Path) -> Counter[str]:
    """Count all tests and steps of a run."""
    tests = {
        path.stem: Counter((outcomes(path) | outcomes(folder / "again" / path.name)).values())
        for path in folder.glob("*.xml")
    }
    total = sum(tests.values(), Counter[str]())
    for line in (folder / "steps.txt").read_text().splitlines():
        outcome, name = line.split(maxsplit=1)
        if outcome == "ok":
            total["passed"] += name not in tests
        elif not tests.get(name, Counter())["failed"]:
            total["failed"] += 1
    return total


if __name__ == "__main__":
    for test in flaky_tests(Path(sys.argv[1])):
        print(f"FLAKY: {test} failed, and passed when run again")
    total = summarize(Path(sys.argv[1]))
    print(f"total: {total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
