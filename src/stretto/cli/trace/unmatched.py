"""Finds what a session requests but no connected producer offers.

Producers may connect later, so these are messages, not errors.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from stretto.protos.config import TraceConfig, TrackEventConfig
    from stretto.protos.trace import TracingServiceState

TRACK_EVENT = "track_event"


def unmatched(
    config: TraceConfig, state: TracingServiceState, added: Collection[str] = ()
) -> list[str]:
    """Return a line for each data source and category that no connected producer offers.

    Args:
        config: the config of the session.
        state: the state of the service.
        added: data sources that the user has not named.
    """
    offered = [each.ds_descriptor for each in state.data_sources if each.ds_descriptor is not None]
    names = {descriptor.name for descriptor in offered}
    categories = {
        category.name
        for descriptor in offered
        if descriptor.track_event_descriptor is not None
        for category in descriptor.track_event_descriptor.available_categories
    }
    lines = []
    for entry in config.data_sources:
        source = entry.config
        if source is None or source.name in added:
            continue
        if source.name not in names:
            lines.append(_not_offered("data source", source.name, names))
        elif source.name == TRACK_EVENT and source.track_event_config is not None:
            lines += _categories(source.track_event_config, categories)
    return list(dict.fromkeys(lines))


def _categories(config: TrackEventConfig, known: Collection[str]) -> Iterable[str]:
    enabled: Sequence[str] = config.enabled_categories
    if not enabled and not config.enabled_tags and "*" in config.disabled_categories:
        yield "the config enables no category of track events"
    for pattern in enabled:
        if not any(matches(pattern, name) for name in known) and pattern != "*":
            yield _not_offered("category", pattern, known)


def matches(pattern: str, name: str) -> bool:
    """Whether a category's name matches a pattern of a config."""
    return name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1]))


def _not_offered(what: str, name: str, known: Collection[str]) -> str:
    return f"no connected process has the {what} {name!r}{nearest(name, known)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint that names the most similar known name; "" if none is similar."""
    close = get_close_matches(name, sorted(known), 1)
    return f"; did you mean {close[0]!r}?" if close else ""
