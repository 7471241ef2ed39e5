"""Zircon's status codes. An epitaph has one as the reason for closing the channel."""

from __future__ import annotations

from typing import Final

OK: Final = 0
INTERNAL: Final = -1
NOT_SUPPORTED: Final = -2
NO_RESOURCES: Final = -3
NO_MEMORY: Final = -4
INVALID_ARGS: Final = -10
BAD_STATE: Final = -20
TIMED_OUT: Final = -21
CANCELED: Final = -23
PEER_CLOSED: Final = -24
NOT_FOUND: Final = -25
ALREADY_EXISTS: Final = -26
UNAVAILABLE: Final = -28
ACCESS_DENIED: Final = -30
IO: Final = -40

_NAMES: Final = {
    value: name for name, value in list(globals().items()) if name.isupper() and name[0] != "_"
}


def status_name(status: int) -> str:
    """Return the name of a status: `PEER_CLOSED`, or `status -77` if it is unknown."""
    return _NAMES.get(status, f"status {status}")
