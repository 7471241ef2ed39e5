"""Finds what a session requests but no producer has offered.

Producers may connect later. So the results are shown to the user, but are not errors.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from stretto.protos.config import DataSourceDescriptor, TraceConfig, TrackEventConfig
    from stretto.protos.trace import TracingServiceState

TRACK_EVENT = "track_event"


class Offers:
    """The names of data sources and categories that producers have offered.

    Args:
        descriptors: the descriptors of the data sources.
    """

    def __init__(self, descriptors: Iterable[DataSourceDescriptor] = ()) -> None:
        self.data_sources: set[str] = set()
        self._categories: set[str] = set()
        for descriptor in descriptors:
            self.data_sources.add(descriptor.name)
            if (events := descriptor.track_event_descriptor) is not None:
                self._categories.update(each.name for each in events.available_categories)

    def add_state(self, state: TracingServiceState) -> None:
        """Add what the connected producers of a service offer."""
        connected = Offers(filter(None, (each.ds_descriptor for each in state.data_sources)))
        self.data_sources |= connected.data_sources
        self._categories |= connected._categories

    def missing_in(self, config: TraceConfig, added: Collection[str] = ()) -> list[str]:
        """Return a line for each data source or category that a config names and no process offers.

        Args:
            config: the config of the session.
            added: data sources that the user has not named.
        """
        lines: list[str] = []
        for entry in config.data_sources:
            source = entry.config
            if source is None or source.name in added:
                continue
            if source.name not in self.data_sources:
                lines.append(_not_offered("data source", source.name, self.data_sources))
            elif source.name == TRACK_EVENT and source.track_event_config is not None:
                lines += self._missing_categories(source.track_event_config)
        return list(dict.fromkeys(lines))

    def _missing_categories(self, config: TrackEventConfig) -> Iterator[str]:
        enabled = config.enabled_categories
        if not enabled and not config.enabled_tags and "*" in config.disabled_categories:
            yield "the config enables no category of track events"
        for pattern in enabled:
            if pattern != "*" and not any(_matches(pattern, name) for name in self._categories):
                yield _not_offered("category", pattern, self._categories)


def _matches(pattern: str, name: str) -> bool:
    return name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))


def _not_offered(what: str, name: str, known: Collection[str]) -> str:
    from difflib import get_close_matches  # its import takes milliseconds

    close = get_close_matches(name, sorted(known), 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"no connected process has the {what} {name!r}{hint}"
