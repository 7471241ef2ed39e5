"""The public names of track events, implemented by the native part."""

from __future__ import annotations

import sys

from stretto import _bundle, _native
from stretto._native import Category, Flow, Track, flow_id, in_event, process_track, thread_track
from stretto.client.track_event import descriptions as _descriptions  # noqa: F401

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

__all__ = [
    "Category",
    "Flow",
    "Track",
    "available",
    "begin",
    "counter",
    "end",
    "flow_id",
    "in_event",
    "instant",
    "now",
    "process_track",
    "slice",
    "thread_track",
    "traced",
]

if sys.implementation.name != "cpython":
    raise ImportError("the native part needs CPython")


def _trace(category: Category, target: T) -> T:
    """Implements `category.traced`. The module `traced` is loaded at the first call."""
    from stretto.client.traced import trace

    return trace(category, target)


_native.set_traced(_trace)
_bundle.unmarshal = _native.unmarshal
_bundle.are_current = _native.are_current

python = Category("python", "events of the default category")
"""The category behind the functions of this module."""

slice = python.slice  # noqa: A001  # the name in Perfetto's vocabulary
instant = python.instant
counter = python.counter
begin = python.begin
end = python.end


def traced(target: T) -> T:
    """Decorate a function, method or class: every call becomes a slice."""
    return python.traced(target)


def available() -> bool:
    """Return whether events can be recorded here: True, the native part is installed."""
    return True


now = _native.boottime_ns
"""The trace clock: nanoseconds of CLOCK_BOOTTIME, for `timestamp=`."""
