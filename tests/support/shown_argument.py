"""Finds out how a trace shows the value of an argument."""

from __future__ import annotations

from typing import Any

import stretto
from tests.support.recorded_events import record

CATEGORY = stretto.Category("test.arguments")


def shown(value: object) -> Any:
    """Record a value as an argument of each kind of event; return the value in the trace."""
    with record() as recorded:
        CATEGORY.instant("keyword", value=value)
        CATEGORY.instant("args", args={"value": value})
        with CATEGORY.slice("slice", value=value):
            pass
        for _ in range(3):
            CATEGORY.instant("again", value=value)
    values = [event.args["value"] for event in recorded.events if event.args]
    assert len(values) == 6
    first = values[0]
    assert all(repr(other) == repr(first) for other in values)
    return first
