from __future__ import annotations

import pytest

import stretto
from stretto.testing import CapturedEvents

pytestmark = pytest.mark.skipif(not stretto.available(), reason="nothing is recorded here")

shop = stretto.Category("captured_events.shop")
stock = stretto.Category("captured_events.stock", tags=["slow"])


def test_events_are_captured_with_their_arguments_in_order_of_time() -> None:
    before = stretto.now()
    with CapturedEvents() as captured:
        assert captured.events == []
        with shop.slice("request", items=2, names=["a", "b"], more={"open": True, "none": None}):
            shop.instant("priced")
        shop.counter("waiting", 3)
    assert [(event.kind, event.name) for event in captured.events] == [
        ("begin", "request"),
        ("instant", "priced"),
        ("end", ""),
        ("counter", ""),
    ]
    request = captured.events[0]
    assert request.category == "captured_events.shop"
    assert request.arguments == {
        "items": 2,
        "names": ["a", "b"],
        "more": {"open": True, "none": "None"},  # The value None is recorded as a text.
    }
    assert before <= request.timestamp <= stretto.now()
    assert captured.events[-1].value == 3
    assert captured.names() == ["request"]
    assert captured.names("instant") == ["priced"]
    assert b"request" in captured.trace


def test_capture_of_a_named_slow_category_contains_no_other_category() -> None:
    with CapturedEvents("captured_events.stock") as captured:
        with shop.slice("request"):
            pass
        with stock.slice("look"):
            pass
    assert captured.names() == ["look"]


def test_slow_categories_are_not_captured_by_default() -> None:
    with CapturedEvents() as captured, stock.slice("look"):
        pass
    assert captured.names() == []


def test_events_of_a_block_that_raises_are_captured() -> None:
    captured = CapturedEvents()
    with pytest.raises(ValueError, match="no bread"), captured, shop.slice("request"):
        raise ValueError("no bread")
    assert captured.names() == ["request"]


def test_events_of_one_flow_have_the_same_flow_id() -> None:
    flow = stretto.Flow()
    with CapturedEvents() as captured:
        shop.instant("send", flow=flow)
        shop.instant("receive", terminating_flow=flow)
    assert [event.flows for event in captured.events] == [[flow.id], [flow.id]]
