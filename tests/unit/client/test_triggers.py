from __future__ import annotations

import pytest

import stretto
from stretto.client.producer_connection import ProducerConnection
from stretto.client.triggers import MAX_WAITING, WaitingTriggers
from stretto.testing.fake_clock import FakeClock


class Endpoint:
    def __init__(self) -> None:
        self.fired: list[str] = []

    def activate_triggers(self, names: list[str]) -> None:
        self.fired += names


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_triggers_are_kept_until_their_ttl_expires(clock: FakeClock) -> None:
    triggers = WaitingTriggers(clock.boottime_ns)
    triggers.add(["short"], 10)
    triggers.add(["long", "as long"], 20)
    triggers.add(["never"], 0)
    clock.advance_ms(10)
    assert triggers.take() == ["long", "as long"]
    assert triggers.take() == []


def test_number_of_kept_triggers_is_bounded(clock: FakeClock) -> None:
    triggers = WaitingTriggers(clock.boottime_ns)
    for number in range(MAX_WAITING + 5):
        triggers.add([str(number)], 1000)
    taken = triggers.take()
    assert (len(taken), taken[-1]) == (MAX_WAITING, str(MAX_WAITING + 4))


def test_triggers_are_sent_at_once_when_connected() -> None:
    producer, endpoint = ProducerConnection([]), Endpoint()
    producer.attach(endpoint)  # type: ignore[arg-type]
    producer.activate_triggers(["early"], 60_000)
    producer.activate_triggers(["not kept"], 0)
    assert endpoint.fired == []
    producer.on_connect()
    assert endpoint.fired == ["early"]
    producer.activate_triggers(["a", "b"], 60_000)
    assert endpoint.fired == ["early", "a", "b"]

    producer.on_disconnect()
    producer.activate_triggers(["later"], 60_000)
    second = Endpoint()
    producer.attach(second)  # type: ignore[arg-type]
    producer.on_connect()
    assert second.fired == ["later"]
    assert endpoint.fired == ["early", "a", "b"]


def test_str_instead_of_a_list_of_triggers_is_refused() -> None:
    with pytest.raises(TypeError, match=r"write \['now'\]"):
        stretto.activate_triggers("now")
