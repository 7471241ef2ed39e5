"""The public names without the native part: every call has no effect.

This module is for platforms without a native wheel. A library may keep its instrumentation: calls
take the same arguments and cost little, decorated functions get the same wrappers as with the
native part, and `available()` is False.
"""

from __future__ import annotations

from itertools import count as _count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    T = TypeVar("T")


class _EmptySlice:
    """A slice that records nothing."""

    __slots__ = ()

    def __enter__(self) -> _EmptySlice:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None


_EMPTY_SLICE = _EmptySlice()


class Category:
    """A category if there is no native part: its methods record nothing. One object per name."""

    __slots__ = ("__weakref__", "description", "name", "tags")
    _known: dict[str, Category] = {}  # noqa: RUF012  # ClassVar would import typing
    enabled = False

    name: str
    description: str
    tags: tuple[str, ...]

    def __new__(
        cls, name: str, description: str | None = None, tags: Sequence[str] | None = None
    ) -> Category:
        _check_name(name)
        self = cls._known.get(name)
        if self is None:
            self = cls._known[name] = super().__new__(cls)
            self.name, self.description, self.tags = name, "", ()
        self.description = description or self.description
        self.tags = tuple(tags) if tags else self.tags
        return self

    def slice(self, name: str, /, **arguments: Any) -> _EmptySlice:
        return _EMPTY_SLICE

    def instant(self, name: str, /, **arguments: Any) -> None:
        return None

    def log_message(self, name: str, message: str, /, *more: Any, **arguments: Any) -> None:
        return None

    def counter(self, name: str, value: float, /, **arguments: Any) -> None:
        return None

    def begin(self, name: str, /, **arguments: Any) -> None:
        return None

    def end(self, **arguments: Any) -> None:
        return None

    def _slice_for_code(self, code: object, /) -> _EmptySlice:
        return _EMPTY_SLICE

    def _trace_calls(self, wrapper: T, /) -> T:
        return wrapper

    def _call_traced(
        self, function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], /
    ) -> T:
        return function(*args, **kwargs)

    def template(self, name: str, /, *names: str, **constants: Any) -> EventTemplate:
        return _EMPTY_TEMPLATE

    def traced(self, target: T) -> T:
        from stretto.client.traced import trace

        return trace(self, target)  # type: ignore[arg-type]  # the native one's counterpart

    def __repr__(self) -> str:
        return f"stretto.Category({self.name!r})"

    def __reduce__(self) -> tuple[type[Category], tuple[str, str, tuple[str, ...]]]:
        return Category, (self.name, self.description, self.tags)


class EventTemplate:
    """Prepared events that are not recorded."""

    __slots__ = ()

    def slice(self, *values: object, **options: Any) -> _EmptySlice:
        return _EMPTY_SLICE

    def instant(self, *values: object, **options: Any) -> None:
        return None

    def instant_at_entry(self, *values: object, **options: Any) -> _EmptySlice:
        return _EMPTY_SLICE


_EMPTY_TEMPLATE = EventTemplate()


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        message = f"a category's name must be a str, not {type(name)!r}"
        raise TypeError(message)
    if not name or any(character in name for character in '"* '):
        message = (
            f"category name {name!r}: use a name without quotes, asterisks and spaces, "
            'like "render" or "net.http"'
        )
        raise ValueError(message)


class Track:
    """A row of the timeline, without effect."""

    __slots__ = ("__weakref__", "name", "parent", "uuid")

    def __init__(self, name: str, *, parent: Track | None = None, id: int = 0) -> None:  # noqa: A002
        self.name = name
        self.parent = parent
        self.uuid = id


class Flow:
    """An arrow between events, without effect."""

    __slots__ = ("__weakref__", "id")
    _ids = _count(1)

    def __init__(self, id: int | None = None) -> None:  # noqa: A002
        self.id = next(self._ids) if id is None else id

    def __reduce__(self) -> tuple[type[Flow], tuple[int]]:
        return Flow, (self.id,)


def flow_id(key: int, index: int, /) -> int:
    """Return one number of a key's stream of 64-bit numbers: the number at `index`."""
    value = (key + index * 0x9E3779B97F4A7C15) & _U64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _U64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _U64
    return value ^ (value >> 31)


_U64 = (1 << 64) - 1


def in_event() -> bool:
    """Return whether the calling thread is recording an event: always False."""
    return False


python = Category("python", "events of the default category")
slice = python.slice  # noqa: A001
instant = python.instant
counter = python.counter
begin = python.begin
end = python.end


traced = python.traced


def thread_track() -> Track:
    """Return a track without effect, in place of the calling thread's track."""
    return Track("thread")


def process_track() -> Track:
    """Return a track without effect, in place of the process's track."""
    return Track("process")


def available() -> bool:
    """Return whether events can be recorded here: False, there is no native part."""
    return False


def now() -> int:
    """Return the time of a monotonic clock in nanoseconds."""
    from time import monotonic_ns

    return monotonic_ns()
