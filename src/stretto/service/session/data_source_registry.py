"""The registered data sources, indexed by name and by producer.

The time of a look-up grows only with its result: thousands of producers may be connected,
each with hundreds of data sources.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from stretto.service.session.data_source import RegisteredDataSource
    from stretto.service.session.session_producer import SessionProducer

    Sources = dict[RegisteredDataSource, None]
    """An ordered set."""


class DataSourceRegistry:
    """All registered data sources, in the order of registration."""

    def __init__(self) -> None:
        self._all: Sources = {}
        self._groups: dict[Hashable, Sources] = {}

    def __iter__(self) -> Iterator[RegisteredDataSource]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, source: RegisteredDataSource) -> None:
        """Add a data source."""
        self._all[source] = None
        for key in _keys(source):
            self._groups.setdefault(key, {})[source] = None

    def remove(self, source: RegisteredDataSource) -> None:
        """Remove a data source."""
        del self._all[source]
        for key in _keys(source):
            group = self._groups[key]
            del group[source]
            if not group:
                del self._groups[key]

    def named(self, name: str) -> list[RegisteredDataSource]:
        """Return all data sources of a name."""
        return list(self._groups.get(name, ()))

    def of_producer(self, producer: SessionProducer) -> list[RegisteredDataSource]:
        """Return all data sources of a producer."""
        return list(self._groups.get(producer, ()))

    def count_of(self, producer: SessionProducer) -> int:
        """Return the number of data sources of a producer."""
        return len(self._groups.get(producer, ()))

    def of(self, producer: SessionProducer, name: str) -> list[RegisteredDataSource]:
        """Return the data sources of a name and a producer."""
        return list(self._groups.get((producer, name), ()))


def _keys(source: RegisteredDataSource) -> tuple[Hashable, ...]:
    return source.name, source.producer, (source.producer, source.name)
