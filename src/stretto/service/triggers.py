"""Triggers: names that producers activate, and that start, stop or copy a session.

::

    START_TRACING    CONFIGURED --trigger--> STARTED --its stop_delay--> flush, end
    STOP_TRACING     STARTED --first trigger--> its stop_delay --> flush, end
    CLONE_SNAPSHOT   STARTED --each trigger--> its stop_delay --> word to the consumer

A session that waits for triggers has nothing to read before one has come; one that is
cloned by them is never read itself.
"""

from __future__ import annotations

from collections import deque

from stretto.service import limits
from stretto.service.data_source import full_match

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Final

    from stretto.protos.config import TraceConfig

# TriggerConfig.TriggerMode
NO_MODE: Final = 0
START_TRACING: Final = 1
STOP_TRACING: Final = 2
CLONE_SNAPSHOT: Final = 4


class ReceivedTrigger:
    """A trigger that a session took notice of."""

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
    """What one session waits for, and what has come.

    Attributes:
        mode: What a trigger does; of STOP and CLONE the one that takes effect.
        timeout_ms: How long the session waits.
        received: All that came, in order; the first 4096 at most.
    """

    __slots__ = ("_emitted", "_wanted", "mode", "received", "timeout_ms")

    def __init__(self, config: TraceConfig.TriggerConfig | None) -> None:
        self.mode = effective_mode(config) if config else NO_MODE
        self.timeout_ms = config.trigger_timeout_ms if config else 0
        self.received: list[ReceivedTrigger] = []
        self._wanted = {trigger.name: trigger for trigger in config.triggers} if config else {}
        self._emitted = 0

    @property
    def waiting(self) -> bool:
        """Whether a trigger has to come before there is anything to read."""
        return self.mode != NO_MODE and not self.received

    def wanted(self, name: str) -> TraceConfig.TriggerConfig.Trigger | None:
        """What the config says of a trigger, or None if it is none of the session's."""
        return self._wanted.get(name) if self.mode != NO_MODE else None

    def take_new(self) -> list[ReceivedTrigger]:
        """Those that the trace hasn't got yet; it gets them now."""
        new = self.received[self._emitted :]
        self._emitted = len(self.received)
        return new

    def hand_over_to(self, clone: SessionTriggers) -> None:
        """Move what came to the triggers of a clone."""
        clone.received, clone._emitted = self.received, self._emitted
        self.received, self._emitted = [], 0


def effective_mode(config: TraceConfig.TriggerConfig) -> int:
    """The mode of a config: this service can always clone."""
    if config.trigger_mode == STOP_TRACING and config.use_clone_snapshot_if_available:
        return CLONE_SNAPSHOT
    return config.trigger_mode


class TriggerHistory:
    """Which triggers took effect in the last 24 hours, in any session."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: deque[tuple[int, str]] = deque(maxlen=limits.MAX_TRIGGER_HISTORY)

    def count(self, name: str, now_ns: int) -> int:
        """How often `name` did."""
        oldest = now_ns - limits.TRIGGER_HISTORY_NS
        while self._entries and self._entries[0][0] < oldest:
            self._entries.popleft()
        return sum(entry == name for _, entry in self._entries)

    def add(self, name: str, now_ns: int) -> None:
        """It did so now."""
        self._entries.append((now_ns, name))


def accepts(
    trigger: TraceConfig.TriggerConfig.Trigger,
    producer_name: str,
    count: int,
    random: Callable[[], float],
) -> bool:
    """Whether an activation of a wanted trigger counts.

    Args:
        trigger: What the session's config says of it.
        producer_name: Who activates it.
        count: How often it took effect in the last 24 hours.
        random: Gives a number in [0, 1).
    """
    pattern = trigger.producer_name_regex
    if pattern and not full_match(pattern, producer_name):
        return False
    if trigger.skip_probability > 0 and random() < trigger.skip_probability:
        return False
    return not trigger.max_per_24_h or count < trigger.max_per_24_h


def names_once(names: Iterable[str]) -> list[str]:
    """Each name once: a request that repeats one means it once."""
    return list(dict.fromkeys(names))
