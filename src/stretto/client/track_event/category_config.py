"""The rules of TrackEventConfig: which categories a session records.

Patterns are compared in three rounds: first exact names, then patterns with a trailing `*`, then
`*` alone. Within a round, `enabled_categories` have precedence over `disabled_categories`, and both
have precedence over tags. So a tag has precedence over `*`, and a name over a tag. If the config
names no tags, `slow` and `debug` are disabled tags. A category without any match is enabled.

Source: docs/formats/track_events.md, "Categories".
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stretto.protos.config import TrackEventConfig

DEFAULT_DISABLED_TAGS = ("slow", "debug")


def _is_exact(pattern: str, name: str) -> bool:
    return pattern == name


def _is_prefix(pattern: str, name: str) -> bool:
    return len(pattern) > 1 and pattern.endswith("*") and name.startswith(pattern[:-1])


def _is_everything(pattern: str, _name: str) -> bool:
    return pattern == "*"


_ROUNDS: tuple[Callable[[str, str], bool], ...] = (_is_exact, _is_prefix, _is_everything)


def is_category_enabled(config: TrackEventConfig | None, name: str, tags: Sequence[str]) -> bool:
    """Whether a session with `config` (None: the defaults) records a category."""
    enabled: Iterable[str] = config.enabled_categories if config else ()
    disabled: Iterable[str] = config.disabled_categories if config else ()
    enabled_tags: Sequence[str] = config.enabled_tags if config else ()
    disabled_tags: Sequence[str] = config.disabled_tags if config else ()
    default_tags = not enabled_tags and not disabled_tags
    for matches in _ROUNDS:
        if any(matches(pattern, name) for pattern in enabled):
            return True
        if any(matches(pattern, name) for pattern in disabled):
            return False
        if any(matches(pattern, tag) for pattern in disabled_tags for tag in tags):
            return False
        untagged = default_tags and matches is _is_exact
        if untagged and any(tag in DEFAULT_DISABLED_TAGS for tag in tags):
            return False
        if any(matches(pattern, tag) for pattern in enabled_tags for tag in tags):
            return True
    return True
