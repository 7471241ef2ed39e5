"""Data sources and categories that no producer offers are found, with the nearest name."""

from __future__ import annotations

from stretto.ports.unmatched import Offers
from stretto.protos.config import (
    DataSourceConfig,
    DataSourceDescriptor,
    TraceConfig,
    TrackEventCategory,
    TrackEventConfig,
    TrackEventDescriptor,
)
from stretto.protos.trace import TracingServiceState

CATEGORIES = [TrackEventCategory(name=name) for name in ("shop.cart", "shop.pay", "python.gc")]
STATE = TracingServiceState(
    data_sources=[
        TracingServiceState.DataSource(ds_descriptor=DataSourceDescriptor(name="linux.ftrace")),
        TracingServiceState.DataSource(
            ds_descriptor=DataSourceDescriptor(
                name="track_event",
                track_event_descriptor=TrackEventDescriptor(available_categories=CATEGORIES),
            )
        ),
    ]
)


def complaints(*sources: DataSourceConfig, added: tuple[str, ...] = ()) -> list[str]:
    config = TraceConfig(data_sources=[TraceConfig.DataSource(config=each) for each in sources])
    offers = Offers()
    offers.add_state(STATE)
    return offers.missing_in(config, added)


def events(*enabled: str, disabled: tuple[str, ...] = ()) -> DataSourceConfig:
    config = TrackEventConfig(enabled_categories=enabled, disabled_categories=disabled)
    return DataSourceConfig(name="track_event", track_event_config=config)


def test_offered_data_sources_and_matching_categories_are_not_reported() -> None:
    sources = [DataSourceConfig(name="linux.ftrace"), events("shop.pay", "python.*", "*")]
    assert complaints(*sources) == []


def test_data_source_that_no_producer_offers_is_reported_with_the_nearest_name() -> None:
    assert complaints(DataSourceConfig(name="linux.ftrce"), DataSourceConfig(name="x")) == [
        "no connected process has the data source 'linux.ftrce'; did you mean 'linux.ftrace'?",
        "no connected process has the data source 'x'",
    ]


def test_data_source_that_the_user_has_not_named_is_not_reported() -> None:
    assert complaints(DataSourceConfig(name="x"), added=("x",)) == []


def test_category_that_matches_nothing_is_reported_once_with_the_nearest_name() -> None:
    assert complaints(events("shop.cat", "none*"), events("shop.cat")) == [
        "no connected process has the category 'shop.cat'; did you mean 'shop.cart'?",
        "no connected process has the category 'none*'",
    ]


def test_track_events_without_any_enabled_category_are_reported() -> None:
    (line,) = complaints(events(disabled=("*",)))
    assert line == "the config enables no category of track events"
