"""A pytest plugin that prints the time of each suite and the number of deselected tests.

Works with and without pytest-xdist. With pytest-xdist each worker collects the tests, and sends
the number of deselected tests to the main process.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

LEFT_OUT = pytest.StashKey[Counter[str]]()
TARGETS = {
    "thorough": "thorough: `make test-all` runs them",
    "once": "on one CPython only: `make test-all` runs them",
    "few_versions": "on three CPythons only: `make test` runs them",
    "other": "not selected",
}


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = Counter()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count the deselected tests by the marker that excluded them."""
    for item in items:
        reason = next((mark for mark in TARGETS if item.get_closest_marker(mark)), "other")
        item.config.stash[LEFT_OUT][reason] += 1


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = dict(session.config.stash[LEFT_OUT])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Keep the counts of a pytest-xdist worker.

    All workers have collected the same tests, so their counts are equal.
    """
    left_out = getattr(node, "workeroutput", {}).get("left_out", {})
    node.config.stash[LEFT_OUT] = Counter(left_out) | node.config.stash[LEFT_OUT]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    tests, seconds = _by_suite(terminalreporter)
    terminalreporter.section("suites")
    for suite in sorted(tests):
        terminalreporter.line(f"{suite:32} {tests[suite]:6} tests {seconds[suite]:8.1f} s")
    total = f"{tests.total():6} tests {sum(seconds.values()):8.1f} s"
    terminalreporter.line(f"{'all, summed over processes':32} {total}")
    for reason, count in sorted(config.stash[LEFT_OUT].items()):
        terminalreporter.line(f"left out: {count} tests, {TARGETS[reason]}")
    if os.environ.get("STRETTO_HYPOTHESIS") == "quick":
        terminalreporter.line("property tests had a tenth of their examples; `make test-all`: all")
    terminalreporter.line("longer forms of some tests: `make endurance`, `make differential`")


def _by_suite(reporter: pytest.TerminalReporter) -> tuple[Counter[str], Counter[str]]:
    """Return test count and seconds (with setup and teardown) of each suite."""
    names: dict[str, set[str]] = {}
    seconds: Counter[str] = Counter()
    for outcome in ("", "passed", "failed", "error", "skipped", "xfailed", "xpassed"):
        for report in reporter.stats.get(outcome, ()):
            if isinstance(report, pytest.TestReport):
                suite = _suite(report.nodeid)
                names.setdefault(suite, set()).add(report.nodeid)
                seconds[suite] += report.duration  # type: ignore[assignment]
    return Counter({suite: len(ids) for suite, ids in names.items()}), seconds


def _suite(nodeid: str) -> str:
    """Return the suite of a test: `tests/unit` for `tests/unit/ipc/test_x.py::test_y`."""
    folders = nodeid.partition("::")[0].split("/")[:-1]
    return "/".join(folders[: folders.index("tests") + 2] if "tests" in folders else folders)
