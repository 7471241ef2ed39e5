"""Fixtures for the tests of both distributions, and checks at the start of a test run."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

pytest.register_assert_rewrite("tests.support")

from tests.support.examples import examples  # noqa: E402 - after the line above
from tests.support.oracle import Oracle, missing  # noqa: E402

pytest_plugins = ["tests.support.by_file", "tests.support.run_table"]

ROOT = Path(__file__).parent

# Hypothesis sets no deadline, because any example may be slow on a shared machine.
hypothesis.settings.register_profile(
    "stretto",
    deadline=None,
    max_examples=examples(100),
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("stretto")


def stretto_folder() -> Path:
    """Returns the folder of the tested package, without importing the package."""
    spec = importlib.util.find_spec("stretto")
    if spec is None or not spec.submodule_search_locations:
        raise pytest.UsageError("stretto is not installed: `make test` does it, or `pip install .`")
    return Path(spec.submodule_search_locations[0])


def pytest_report_header() -> str:
    return f"stretto: {stretto_folder()}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Removes the group that pytest-xdist adds to the name of a test.

    With it, a test that failed would not be found when it is run again.
    """
    of_a_worker = hasattr(report, "node")
    if of_a_worker and "xdist_group" in report.keywords:
        report.nodeid = report.nodeid.rpartition("@")[0]


FEW_VERSIONS = ("stretto-fidl/tests", "tests/unit/analysis", "tests/unit/viewer")
"""Folders of tests of code that uses little of what differs between versions of CPython."""

MAX_ROOT = 24
"""Characters of the folder of all temporary folders: a socket's path has at most 107."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Checks that the installed package is tested, enables SIGINT, and shortens temporary paths."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell without job control ignores SIGINT in background jobs. Child processes, such as
        # recorded programs, would inherit this.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    root = os.environ.get("PYTEST_DEBUG_TEMPROOT") or tempfile.gettempdir()
    if config.option.basetemp is None and len(root) > MAX_ROOT:
        config.option.basetemp = tempfile.mkdtemp(prefix="stretto-", dir="/tmp")
        config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp, ignore_errors=True))
    if os.environ.get("STRETTO_TEST_INSTALLED") and stretto_folder().is_relative_to(ROOT / "src"):
        raise pytest.UsageError(
            f"stretto was imported from {stretto_folder()}: take src/ off PYTHONPATH"
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of FEW_VERSIONS."""
    folders = tuple(f"{ROOT / folder}/" for folder in FEW_VERSIONS)
    for item in items:
        if str(item.path).startswith(folders):
            item.add_marker("few_versions")


@pytest.fixture(scope="module", autouse=True)
def frozen() -> None:
    """Excludes what is alive between files from garbage collections: many tests collect garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def repository() -> Path:
    """Returns the folder of the checkout with the tests."""
    return ROOT


@pytest.fixture
def oracle() -> Callable[[bytes], Oracle]:
    """Returns the class that loads a trace into the real trace processor.

    Skips the test if there is no trace processor.
    """
    reason = missing()
    if reason:
        pytest.skip(reason)
    return Oracle
