"""Fixtures of the tests of profilers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stretto.profilers import functions, install
from tests.support.call_slices import PROFILED


@pytest.fixture
def function_options() -> Iterator[Callable[..., None]]:
    """Trace only calls of test programs; return a function that changes the options."""
    functions.install()

    def use(**more: Any) -> None:
        install({"include": PROFILED, "imports": "full", **more})

    use()
    yield use
    install()
