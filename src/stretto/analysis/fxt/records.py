"""Records of a trace as Python values; strings and threads stand for themselves.

What fills the tables (string and thread records) is used up by the reader and made by the writer,
and none of these.
"""

from __future__ import annotations

from typing import NamedTuple


class Argument(NamedTuple):
    """A value with its name.

    Of a DOUBLE the value is a float, of a TEXT a str, of BYTES bytes, of a BOOL a bool, of a NULL
    None, and an int of the others.
    """

    name: str
    type: int
    value: int | float | str | bytes | None


class Thread(NamedTuple):
    """A thread by the ids (koids) of its process and itself."""

    process: int
    thread: int


class ProviderInfo(NamedTuple):
    """What follows is of this provider."""

    id: int
    name: str


class ProviderSection(NamedTuple):
    """What follows is of this provider, which was introduced earlier."""

    id: int


class ProviderEvent(NamedTuple):
    """A provider lost records, if the event is BUFFER_FILLED."""

    id: int
    event: int


class Initialization(NamedTuple):
    """How fast the provider's clock is."""

    ticks_per_second: int


class Event(NamedTuple):
    """Something that happened on a thread."""

    type: int
    timestamp: int
    """In ticks of the provider, or nanoseconds: see the reader."""
    thread: Thread
    category: str
    name: str
    arguments: tuple[Argument, ...] = ()
    id: int = 0
    """Of a counter, an asynchronous operation, or a flow."""
    end: int = 0
    """Of a DURATION_COMPLETE."""


class KernelObject(NamedTuple):
    """The name of a process, a thread, or another object."""

    type: int
    id: int
    name: str
    arguments: tuple[Argument, ...] = ()


class Blob(NamedTuple):
    """Bytes; those of one name belong together."""

    type: int
    name: str
    data: bytes


Record = (
    ProviderInfo | ProviderSection | ProviderEvent | Initialization | Event | KernelObject | Blob
)
