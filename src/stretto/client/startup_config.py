"""Compares data source configs, to decide whether a session may adopt a startup session.

Source: docs/formats/track_events.md, "Startup tracing".
"""

from __future__ import annotations

from stretto.protozero.message import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.protos.config import DataSourceConfig

_GIVEN_BY_SERVICE = (
    "target_buffer", "tracing_session_id", "session_initiator", "trace_duration_ms",
    "stop_timeout_ms", "enable_extra_guardrails",
)  # fmt: skip
"""The fields of a DataSourceConfig that are set by services."""


def requested_fields(config: DataSourceConfig) -> dict[str, object]:
    """Return the fields of a config, without those that services set.

    Explicit default values are left out, so that equivalent configs are equal.
    """
    values = _values(config)
    for name in _GIVEN_BY_SERVICE:
        values.pop(name, None)
    return values


def _values(message: Message) -> dict[str, object]:
    """Return the fields of a message that differ from their defaults."""
    default = type(message)()
    values: dict[str, object] = {"": message.unknown_fields} if message.unknown_fields else {}
    for name, value in message.set_fields().items():
        said = _value(value)
        if said not in ({}, []) and value != getattr(default, name):
            values[name] = said
    return values


def _value(value: object) -> object:
    if isinstance(value, Message):
        return _values(value)
    return [_value(item) for item in value] if isinstance(value, list) else value
