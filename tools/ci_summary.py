"""Add up a CI run for its last line: `total: 812 passed, 0 failed, 3 skipped`.

    python tools/ci_summary.py RESULTS_FOLDER

The folder holds JUnit files of test runs, and `steps.txt` with a line `ok NAME` or
`failed NAME` for each step. Tests count one by one; a step counts itself unless its
failure shows already in a test of the same name's file (`python-3.12` and
`python-3.12.xml`).
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path


def count_tests(path: Path) -> Counter[str]:
    """Passed, failed and skipped tests of one JUnit file."""
    counts: Counter[str] = Counter()
    for case in ET.parse(path).iter("testcase"):
        children = {child.tag for child in case}
        if children & {"failure", "error"}:
            counts["failed"] += 1
        else:
            counts["skipped" if "skipped" in children else "passed"] += 1
    return counts


def summarize(folder: Path) -> Counter[str]:
    """All tests and steps of a run."""
    tests = {path.stem: count_tests(path) for path in folder.glob("*.xml")}
    total = sum(tests.values(), Counter[str]())
    for line in (folder / "steps.txt").read_text().splitlines():
        outcome, name = line.split(maxsplit=1)
        if outcome == "ok":
            total["passed"] += name not in tests
        elif not tests.get(name, Counter())["failed"]:
            total["failed"] += 1
    return total


if __name__ == "__main__":
    total = summarize(Path(sys.argv[1]))
    print(f"total: {total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
