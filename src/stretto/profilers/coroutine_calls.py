"""The coroutine calls of a task: which ones it awaits, and when they began and ended.

A look at a suspended task gives the chain of what it awaits:

    handler -> fetch -> asyncio.sleep        coroutines, and generators of `@types.coroutine`
    handler -> rows -> asyncio.sleep         `rows` is an asynchronous generator: its next item

What a look finds and the look before did not find, has begun between the two looks. What is
missing has ended between them. The interpreter's events say when, to the microsecond. If the
function is switched off (auto detail), or its events were not recorded, only samples of the stack
or other calls of the chain limit the time. Then a call begins at the latest and ends at the
earliest possible time, so that work of its caller doesn't count as its own; arguments say how
accurate that is.
"""

from __future__ import annotations

import gc

# Importing `operator` and `types` would take a millisecond: few interpreters have loaded them.
from _collections_abc import (  # type: ignore[attr-defined]
    async_generator as AsyncGeneratorType,  # noqa: N812
)
from _collections_abc import coroutine as CoroutineType  # type: ignore[attr-defined]  # noqa: N812
from _collections_abc import generator as GeneratorType  # type: ignore[attr-defined]  # noqa: N812
from _operator import attrgetter
from _weakref import ref

from stretto import _pyhooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

MAX_CALLS = 100
"""The largest number of nested coroutine calls that a lane shows."""
_READERS = {
    id(CoroutineType): attrgetter("cr_code", "cr_frame", "cr_await"),
    id(GeneratorType): attrgetter("gi_code", "gi_frame", "gi_yieldfrom"),
    id(AsyncGeneratorType): attrgetter("ag_code", "ag_frame", "ag_await"),
}
"""What reads code, frame and awaited object, by the id of the type: the hash of a type may be code
of the program. The three types are never freed."""
_WRAPPERS = {
    "async_generator_asend", "async_generator_athrow", "anext_awaitable", "coroutine_wrapper",
}  # fmt: skip
"""CPython's awaitables around a coroutine or an asynchronous generator, which they don't show."""


def _reader(kind: type) -> Callable[[Any], tuple[Any, Any, Any]] | None:
    """Return what reads code, frame and awaited object of a coroutine; None for another type."""
    if reader := _READERS.get(id(kind)):
        return reader
    for prefix, inner in (("cr", "cr_await"), ("gi", "gi_yieldfrom"), ("ag", "ag_await")):
        if hasattr(kind, inner):  # Those of Cython, for example.
            return attrgetter(f"{prefix}_code", f"{prefix}_frame", inner)
    return None


def _is_wrapper(value: object) -> bool:
    return type(value).__name__ in _WRAPPERS


def _unwrap(awaited: Any) -> Any:
    """Return the coroutine or generator in an awaitable of CPython; None if there is none."""
    for _ in range(3):  # anext() with a default is around an item's awaitable.
        if not _is_wrapper(awaited):
            break
        inner = gc.get_referents(awaited)
        awaited = next((each for each in inner if _reader(type(each)) or _is_wrapper(each)), None)
    return awaited


def chain(awaited: Any) -> list[tuple[Any, CodeType, Any]]:
    """Return the chain of suspended coroutines: each with its code and its frame."""
    found: list[tuple[Any, CodeType, Any]] = []
    while len(found) < MAX_CALLS:
        reader = _READERS.get(id(type(awaited))) or _reader(type(awaited))
        if not reader:
            if not _is_wrapper(awaited):
                break
            awaited = _unwrap(awaited)
            if not (reader := _reader(type(awaited))):
                break
        code, frame, inner = reader(awaited)
        found.append((awaited, code, frame))
        awaited = inner
    return found


class Call:
    """A coroutine call that a lane shows.

    Args:
        coroutine: the coroutine; only a weak reference is kept.
        code: its code.
        name: the name of its slice; None if it has none.

    Attributes:
        begin: when the call has begun, in ns; 0 if unknown.
        unsure: the call may have begun as much earlier, in ns.
    """

    __slots__ = ("_coroutine", "_frame", "begin", "code", "name", "unsure")

    def __init__(self, coroutine: Any, code: CodeType, name: str | None) -> None:
        self._coroutine = ref(coroutine)
        self._frame = self.begin = self.unsure = 0
        self.code = code
        self.name = name

    def find_begin(self, after: int, before: int) -> None:
        """Ask when the call has begun; its end is kept from now on."""
        self._frame, self.begin, self.unsure = _pyhooks.coroutine_begin(
            self._coroutine(), self.code, after, before
        )

    def end(self, after: int, before: int) -> tuple[int, int]:
        """Return when the call has ended, and how much later it may have; 0 if unknown."""
        return _pyhooks.coroutine_end(self._frame, self.code, after, before)

    def lasts(self, coroutine: Any, after: int, before: int) -> bool:
        """Whether this call is that of the coroutine, which a look finds now.

        An asynchronous generator may have ended its call meanwhile, and be at its next item.
        """
        if self._coroutine() is not coroutine:
            return False
        if type(coroutine) is not AsyncGeneratorType:
            return True
        end, later = self.end(after, before)
        return not end or bool(later)


def find_begins(calls: list[Call], after: int, before: int) -> None:
    """Set the begins of new calls. A call begins not before the calls around it.

    Args:
        calls: the outermost call first.
        after: the earliest time.
        before: the latest time.
    """
    for call in calls:
        call.find_begin(after, before)
    settle_begins(calls, after, before)


def settle_begins(calls: list[Call], after: int, before: int) -> None:
    """Set the begins that are unknown (0), as late as possible."""
    known = [call.begin for call in calls]
    for call in reversed(calls):
        before = call.begin = max(after, min(call.begin or before, before))
    for call, begin in zip(calls, known, strict=True):
        if not begin:
            call.unsure = call.begin - after
        after = call.begin - call.unsure


def ends_of(calls: list[Call], after: int, before: int) -> list[tuple[int, int]]:
    """Return the end of each call, and how much later it may have ended.

    Args:
        calls: the innermost call first.
        after: the earliest time.
        before: the latest time.
    """
    ends = []
    for call in calls:
        end, later = call.end(after, before)
        ends.append((max(end, after), later if end else before - after))
        after = max(end, after)
    return ends
