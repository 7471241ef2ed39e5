"""Triggers: names that producers activate to start, stop or clone a session.

::

    START_TRACING    CONFIGURED --trigger--> STARTED --its stop_delay--> flush, end
    STOP_TRACING     STARTED --first trigger--> its stop_delay --> flush, end
    CLONE_SNAPSHOT   STARTED --each trigger--> its stop_delay --> event to the consumer

A session with triggers can't be read before the first trigger. A session that is cloned by
triggers can't be read at all: only its clones can.
"""

from __future__ import annotations

from stretto.base.c_modules import defaultdict, deque
from stretto.service import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

    from stretto.protos.config import TraceConfig
    from stretto.service.session.configured_triggers import ConfiguredTrigger

# Values of TriggerConfig.TriggerMode.
NO_MODE: Final = 0
START_TRACING: Final = 1
STOP_TRACING: Final = 2
CLONE_SNAPSHOT: Final = 4


class ReceivedTrigger:
    """A trigger that a session has received."""

    __slots__ = ("boot_time_ns", "name", "producer_name", "stop_delay_ms", "uid")

    def __init__(
        self, name: str, producer_name: str, uid: int, boot_time_ns: int, stop_delay_ms: int
    ) -> None:
        self.name = name
        self.producer_name = producer_name
        self.uid = uid
        self.boot_time_ns = boot_time_ns
        self.stop_delay_ms = stop_delay_ms


class SessionTriggers:
    """The configured and the received triggers of one session.

    Attributes:
        mode: The effective TriggerMode.
        timeout_ms: Time in ms after which the session ends if no trigger has arrived.
        received: Received triggers in order; at most the first 4096.
    """

    def __init__(
        self, config: TraceConfig.TriggerConfig | None, configured: Mapping[str, ConfiguredTrigger]
    ) -> None:
        """Create the triggers of a session; `configured` is the result of `compile_triggers`."""
        self.mode = effective_mode(config) if config else NO_MODE
        self.timeout_ms = config.trigger_timeout_ms if config else 0
        self.received: list[ReceivedTrigger] = []
        self._configured = configured
        self._emitted = 0

    @property
    def waiting(self) -> bool:
        """Whether the session still waits for its first trigger, and can't be read."""
        return self.mode != NO_MODE and not self.received

    def configured(self, name: str) -> ConfiguredTrigger | None:
        """Return the trigger of this name in the config; None if there is none."""
        return self._configured.get(name) if self.mode != NO_MODE else None

    def take_new(self) -> list[ReceivedTrigger]:
        """Return the triggers received since the last call, for the trace."""
        new = self.received[self._emitted :]
        self._emitted = len(self.received)
        return new

    def hand_over_to(self, clone: SessionTriggers) -> None:
        """Move the received triggers to a clone."""
        clone.received, clone._emitted = self.received, self._emitted
        self.received, self._emitted = [], 0


def effective_mode(config: TraceConfig.TriggerConfig) -> int:
    """Return the trigger mode of a config. `use_clone_snapshot_if_available` may replace it."""
    if config.trigger_mode == STOP_TRACING and config.use_clone_snapshot_if_available:
        return CLONE_SNAPSHOT
    return config.trigger_mode


class TriggerHistory:
    """Triggers that took effect in any session in the last 24 hours; at most 65536."""

    def __init__(self) -> None:
        self._entries: deque[tuple[int, str]] = deque()
        self._counts: defaultdict[str, int] = defaultdict(int)

    def count(self, name: str, now_ns: int) -> int:
        """Return how often trigger `name` took effect in the last 24 hours."""
        oldest = now_ns - limits.TRIGGER_HISTORY_NS
        while self._entries and self._entries[0][0] < oldest:
            self._forget_first()
        return self._counts.get(name, 0)

    def add(self, name: str, now_ns: int) -> None:
        """Add an activation that has taken effect."""
        if len(self._entries) >= limits.MAX_TRIGGER_HISTORY:
            self._forget_first()
        self._entries.append((now_ns, name))
        self._counts[name] += 1

    def _forget_first(self) -> None:
        _, name = self._entries.popleft()
        self._counts[name] -= 1
        if not self._counts[name]:
            del self._counts[name]


def names_once(names: Iterable[str]) -> list[str]:
    """Return the names without repetitions, in the order of their first occurrence."""
    return list(dict.fromkeys(names))
