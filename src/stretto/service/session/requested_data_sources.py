"""The data sources that a config requests, indexed by name.

A config may have thousands of entries, and thousands of data sources may register. So each
registration checks only the entries with its name, and the filters of an entry are sets and
compiled expressions.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from typing import Final

    from stretto.protos.config import DataSourceConfig, TraceConfig
    from stretto.service.session.data_source import RegisteredDataSource
    from stretto.service.session.name_filter import NameFilter, RegexCompiler
    from stretto.service.session.session_producer import SessionProducer

_HOST: Final = "host"
"""Selects the machine of the service in a `machine_name_filter`, whatever its name."""


class RequestedDataSource:
    """An entry of a config's `data_sources`.

    Attributes:
        config: The entry in the session's config.
        producers: Filter for the names of producers; None accepts all names.
    """

    __slots__ = ("_all_machines", "_machines", "_made", "config", "producers")

    def __init__(
        self, config: DataSourceConfig, machines: Sequence[str], *, all_machines: bool
    ) -> None:
        self.config = config
        self.producers: NameFilter | None = None
        self._machines = frozenset(machines)
        self._all_machines = all_machines
        self._made: tuple[Hashable, DataSourceConfig] | None = None

    def config_for_producers(
        self, key: Hashable, make: Callable[[], DataSourceConfig]
    ) -> DataSourceConfig:
        """Return the config for producers: a shared object, which must not be changed.

        The config is cached, because it may be long, and a producer may register hundreds of data
        sources with the same name.

        Args:
            key: The values that the config depends on; if they change, the config is created again.
            make: Creates a new config.
        """
        if self._made is None or self._made[0] != key:
            self._made = key, make()
        return self._made[1]

    def matches(self, source: RegisteredDataSource) -> bool:
        """Whether a data source with this entry's name matches the rest of the entry."""
        producer = source.producer
        if not self._machine_matches(producer):
            return False
        return self.producers is None or self.producers.matches(producer.name)

    def _machine_matches(self, producer: SessionProducer) -> bool:
        if not self._machines:
            return self._all_machines or not producer.identity.machine_id
        here = not producer.identity.machine_id and _HOST in self._machines
        return here or producer.machine_name in self._machines


class RequestedDataSources:
    """The `data_sources` entries of a config, in the order of the config.

    Attributes:
        entries: All of them.

    Raises:
        ConfigError: A regular expression is invalid; the message contains its path.
    """

    def __init__(self, config: TraceConfig) -> None:
        self.entries: list[RequestedDataSource] = []
        self._by_name: dict[str, list[RequestedDataSource]] = {}
        compiler: RegexCompiler | None = None
        all_machines = config.trace_all_machines
        for index, entry in enumerate(config.data_sources):
            # Read only the fields that are set: a config may have 60,000 small entries.
            fields = vars(entry)
            source: DataSourceConfig | None = fields.get("config")
            if source is None:
                continue
            machines = fields.get("machine_name_filter", ())
            requested = RequestedDataSource(source, machines, all_machines=all_machines)
            if "producer_name_filter" in fields or "producer_name_regex_filter" in fields:
                compiler = compiler or _make_compiler()
                requested.producers = _make_filter(entry, index, compiler)
            self.entries.append(requested)
            self._by_name.setdefault(requested.config.name, []).append(requested)

    def named(self, name: str) -> Sequence[RequestedDataSource]:
        """Return the entries for data sources of this name."""
        return self._by_name.get(name, ())

    def take_filters_of(self, other: RequestedDataSources) -> list[RequestedDataSource]:
        """Copy the producer filters from another config's entries with the same names.

        Returns:
            The entries that have new filters. If several entries of `other` have the same
            name, the last one is used.
        """
        changed = [each for each in self.entries if other.named(each.config.name)]
        for each in changed:
            each.producers = other.named(each.config.name)[-1].producers
        return changed


def _make_compiler() -> RegexCompiler:
    from stretto.service.session.name_filter import RegexCompiler  # Few configs have a filter.

    return RegexCompiler()


def _make_filter(entry: TraceConfig.DataSource, index: int, compiler: RegexCompiler) -> NameFilter:
    from stretto.service.session.name_filter import NameFilter

    field = f"data_sources[{index}].producer_name_regex_filter"
    regexes = [compiler.compile(each, field) for each in entry.producer_name_regex_filter]
    return NameFilter(entry.producer_name_filter, regexes)
