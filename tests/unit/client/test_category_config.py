"""Which rules enable categories, and in which order rules apply (cases of Perfetto's tests)."""

from __future__ import annotations

import pytest

from stretto.client.track_event.category_config import is_category_enabled
from stretto.protos.config import TrackEventConfig

CATEGORIES = {
    "foo": (),
    "foobar": (),
    "bar": ("tag",),
    "red": ("tag", "slow"),
    "cat.slow": ("slow",),
    "cat.verbose": ("debug",),
    "test": ("tag",),
    "test.verbose": ("tag", "debug"),
    "disabled-by-default-cat": ("slow",),
    "slow_category": ("slow",),
    "untagged": (),
}
PLAIN = {"foo", "foobar", "bar", "test", "untagged"}
ALL = set(CATEGORIES)


def recorded(**config):
    made = TrackEventConfig(**config)
    return {name for name, tags in CATEGORIES.items() if is_category_enabled(made, name, tags)}


def test_default_config_enables_all_categories_except_slow_and_debug():
    found = {name for name, tags in CATEGORIES.items() if is_category_enabled(None, name, tags)}
    assert found == PLAIN


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, PLAIN),
        ({"disabled_categories": ["*"]}, set()),
        ({"enabled_categories": ["*"]}, PLAIN),
        ({"disabled_categories": ["*"], "enabled_categories": ["foo"]}, {"foo"}),
        ({"disabled_categories": ["*"], "enabled_categories": ["fo*"]}, {"foo", "foobar"}),
        ({"disabled_categories": ["foo"]}, PLAIN - {"foo"}),
        ({"disabled_categories": ["fo*"]}, PLAIN - {"foo", "foobar"}),
        ({"disabled_categories": ["fo*"], "enabled_categories": ["foo"]}, PLAIN - {"foobar"}),
        ({"disabled_categories": ["foo"], "enabled_categories": ["fo*"]}, PLAIN - {"foo"}),
        ({"disabled_categories": ["foo"], "enabled_categories": ["foo"]}, PLAIN),
        (
            {"disabled_categories": ["*"], "enabled_tags": ["tag"]},
            {"bar", "red", "test", "test.verbose"},  # A rule for a tag has priority over `*`.
        ),
        ({"enabled_tags": ["tag"]}, ALL),  # Categories that match no rule are enabled.
        (
            {"enabled_categories": ["*"], "disabled_tags": ["slow"]},
            ALL - {"red", "cat.slow", "disabled-by-default-cat", "slow_category"},
        ),
        (
            {"enabled_categories": ["slow_*"], "disabled_tags": ["slow"]},
            PLAIN | {"cat.verbose", "test.verbose"},
        ),
        ({"enabled_categories": ["slow_*"]}, PLAIN),
        ({"enabled_categories": ["slow_category"]}, PLAIN | {"slow_category"}),
        (
            {"enabled_categories": ["disabled-by-default-cat"]},
            PLAIN | {"disabled-by-default-cat"},
        ),
        ({"enabled_tags": ["slow", "debug"]}, ALL),
        (
            {"enabled_tags": ["tag"], "disabled_tags": ["debug"]},
            ALL - {"cat.verbose", "test.verbose"},
        ),
        ({"disabled_tags": ["ta*"]}, ALL - {"bar", "red", "test", "test.verbose"}),
        ({"disabled_tags": ["*"]}, {"foo", "foobar", "untagged"}),
        ({"disabled_tags": ["nothing"]}, ALL),
    ],
)
def test_most_specific_rule_of_categories_and_tags_decides(config, expected):
    assert recorded(**config) == expected


def test_single_star_is_not_a_prefix_pattern():
    """`*` is less specific than a rule for a tag; a prefix pattern is more specific."""
    tags = ("slow",)
    assert is_category_enabled(TrackEventConfig(enabled_categories=["*"]), "x", tags) is False
    enabled = TrackEventConfig(enabled_categories=["x*"], disabled_tags=["sl*"])
    assert is_category_enabled(enabled, "xy", tags) is True


def test_star_within_a_pattern_is_a_plain_character():
    config = TrackEventConfig(disabled_categories=["*"], enabled_categories=["f*o", "f*b*"])
    assert not is_category_enabled(config, "foo", ())
    assert is_category_enabled(config, "f*bar", ())
