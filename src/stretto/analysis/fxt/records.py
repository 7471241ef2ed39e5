"""Records of a trace as Python values, with the references to strings and threads resolved.

String and thread records have no class here: they only fill the tables. The reader consumes them,
and the writer generates them.
"""

from __future__ import annotations

from typing import NamedTuple


class Argument(NamedTuple):
    """A value with its name.

    The value of a DOUBLE is a float, of a TEXT a str, of BYTES bytes, of a BOOL a bool, of a NULL
    None, and of all other types an int.
    """

    name: str
    type: int
    value: int | float | str | bytes | None


class Thread(NamedTuple):
    """A thread, identified by the koids of its process and of itself."""

    process: int
    thread: int


class ProviderInfo(NamedTuple):
    """Introduces a provider: the records that follow belong to that provider."""

    id: int
    name: str


class ProviderSection(NamedTuple):
    """Switches to an earlier provider: the records that follow belong to that provider."""

    id: int


class ProviderEvent(NamedTuple):
    """An event of a provider; BUFFER_FILLED means that records were lost."""

    id: int
    event: int


class Initialization(NamedTuple):
    """The rate of the provider's clock."""

    ticks_per_second: int


class Event(NamedTuple):
    """An event of a thread."""

    type: int
    timestamp: int
    """Ticks of the provider's clock; nanoseconds if the event comes from `RecordReader`."""
    thread: Thread
    category: str
    name: str
    arguments: tuple[Argument, ...] = ()
    id: int = 0
    """The id of a counter, an asynchronous operation, or a flow."""
    end: int = 0
    """The end time of a DURATION_COMPLETE."""


class KernelObject(NamedTuple):
    """The name of a process, a thread, or another object."""

    type: int
    id: int
    name: str
    arguments: tuple[Argument, ...] = ()


class Blob(NamedTuple):
    """Bytes; blobs with the same name are parts of the same data."""

    type: int
    name: str
    data: bytes


Record = (
    ProviderInfo | ProviderSection | ProviderEvent | Initialization | Event | KernelObject | Blob
)
