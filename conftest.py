"""What every test of both distributions may use, and what a test run has to be sure of."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

pytest.register_assert_rewrite("tests.support")

from tests.support.examples import examples  # noqa: E402 - after the line above
from tests.support.oracle import Oracle, missing  # noqa: E402

pytest_plugins = ["tests.support.run_table"]

ROOT = Path(__file__).parent

# A shared machine stops a test at any moment: time says nothing about an example.
hypothesis.settings.register_profile(
    "stretto",
    deadline=None,
    max_examples=examples(100),
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("stretto")


def stretto_folder() -> Path:
    """Where the tested package lies; found without importing it."""
    spec = importlib.util.find_spec("stretto")
    if spec is None or not spec.submodule_search_locations:
        raise pytest.UsageError("stretto is not installed: `make test` does it, or `pip install .`")
    return Path(spec.submodule_search_locations[0])


def pytest_report_header() -> str:
    return f"stretto: {stretto_folder()}"


def pytest_configure() -> None:
    """`make test` tests what it installed, never the sources beside it."""
    if os.environ.get("STRETTO_TEST_INSTALLED") and stretto_folder().is_relative_to(ROOT / "src"):
        raise pytest.UsageError(
            f"stretto was imported from {stretto_folder()}: take src/ off PYTHONPATH"
        )


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout that the tests lie in."""
    return ROOT


@pytest.fixture
def oracle() -> Callable[[bytes], Oracle]:
    """Load a trace into the real trace processor; skips where there is none."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    return Oracle
