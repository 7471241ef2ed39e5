from __future__ import annotations

import pytest

from stretto.base.errors import ConfigError
from stretto.protos.config import BuiltinClock, TraceConfig


def test_enum_values_are_plain_integers() -> None:
    assert BuiltinClock.BUILTIN_CLOCK_BOOTTIME == 6
    assert type(BuiltinClock.BUILTIN_CLOCK_BOOTTIME) is int


def test_nested_enum_values_are_attributes_of_the_message() -> None:
    buffer = TraceConfig.BufferConfig
    assert buffer.RING_BUFFER == buffer.FillPolicy.RING_BUFFER == 1


def test_enum_converts_between_names_and_values() -> None:
    policy = TraceConfig.BufferConfig.FillPolicy
    assert policy.name_of(2) == "DISCARD"
    assert policy.name_of(77) == "77"
    assert policy.value_of("DISCARD") == 2
    with pytest.raises(ConfigError, match="RING_BUFFER"):
        policy.value_of("SQUARE_BUFFER")
