from __future__ import annotations

from collections.abc import Iterator

import pytest

from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.far_end import FarEnd


@pytest.fixture
def runner() -> FakeTaskRunner:
    return FakeTaskRunner()


@pytest.fixture
def far(runner: FakeTaskRunner) -> Iterator[FarEnd]:
    """A client."""
    with FarEnd(runner) as end:
        yield end


@pytest.fixture
def service(runner: FakeTaskRunner) -> Iterator[FarEnd]:
    """A tracing service."""
    with FarEnd(runner) as end:
        yield end
