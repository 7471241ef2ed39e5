"""Triggers: names that producers activate, and that start, stop or copy a session.

::

    START_TRACING    CONFIGURED --trigger--> STARTED --its stop_delay--> flush, end
    STOP_TRACING     STARTED --first trigger--> its stop_delay --> flush, end
    CLONE_SNAPSHOT   STARTED --each trigger--> its stop_delay --> word to the consumer

A session that waits for triggers has nothing to read before one has come; one that is
cloned by them is never read itself.
"""

from __future__ import annotations

from collections import Counter, deque

from stretto.service import limits
from stretto.service.session.name_filter import RegexCompiler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Final

    from stretto.base.regex import Regex
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


class WantedTrigger:
    """A trigger that a session waits for, as its config describes it."""

    __slots__ = ("_producers", "_trigger")

    def __init__(self, trigger: TraceConfig.TriggerConfig.Trigger, producers: Regex | None) -> None:
        """`producers`: which of them may activate it; None for all."""
        # A config may have 14,000 of them: the fields are read when a producer activates it.
        self._trigger = trigger
        self._producers = producers

    @property
    def stop_delay_ms(self) -> int:
        """Of the config."""
        return self._trigger.stop_delay_ms

    def accepts(self, producer_name: str, count: int, random: Callable[[], float]) -> bool:
        """Whether an activation counts.

        Args:
            producer_name: The producer's that activates it.
            count: How often it took effect in the last 24 hours.
            random: Gives a number in [0, 1).
        """
        if self._producers is not None and not self._producers.full_match(producer_name):
            return False
        trigger = self._trigger
        if trigger.skip_probability > 0 and random() < trigger.skip_probability:
            return False
        return not trigger.max_per_24_h or count < trigger.max_per_24_h


def compile_triggers(config: TraceConfig.TriggerConfig) -> dict[str, WantedTrigger]:
    """The triggers of a config by name.

    Raises:
        ConfigError: A regular expression can't be used; it says which.
    """
    compiler = RegexCompiler()
    wanted = {}
    for index, trigger in enumerate(config.triggers):
        producers = None
        if trigger.has("producer_name_regex"):
            pattern = trigger.producer_name_regex
            field = f"trigger_config.triggers[{index}].producer_name_regex"
            producers = compiler.compile(pattern, field)
        wanted[trigger.name] = WantedTrigger(trigger, producers)
    return wanted


class SessionTriggers:
    """What one session waits for, and what has come.

    Attributes:
        mode: What a trigger does; of STOP and CLONE the one that takes effect.
        timeout_ms: How long the session waits.
        received: All that came, in order; the first 4096 at most.
    """

    __slots__ = ("_emitted", "_wanted", "mode", "received", "timeout_ms")

    def __init__(
        self, config: TraceConfig.TriggerConfig | None, wanted: Mapping[str, WantedTrigger]
    ) -> None:
        """`wanted` are the config's triggers by name (`compile_triggers`)."""
        self.mode = effective_mode(config) if config else NO_MODE
        self.timeout_ms = config.trigger_timeout_ms if config else 0
        self.received: list[ReceivedTrigger] = []
        self._wanted = wanted
        self._emitted = 0

    @property
    def waiting(self) -> bool:
        """Whether a trigger has to come before there is anything to read."""
        return self.mode != NO_MODE and not self.received

    def wanted(self, name: str) -> WantedTrigger | None:
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
    """Which triggers took effect in the last 24 hours, in any session; the last 65536."""

    __slots__ = ("_counts", "_entries")

    def __init__(self) -> None:
        self._entries: deque[tuple[int, str]] = deque()
        self._counts: Counter[str] = Counter()

    def count(self, name: str, now_ns: int) -> int:
        """How often `name` did."""
        oldest = now_ns - limits.TRIGGER_HISTORY_NS
        while self._entries and self._entries[0][0] < oldest:
            self._forget_first()
        return self._counts[name]

    def add(self, name: str, now_ns: int) -> None:
        """It did so now."""
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
    """Each name once: a request that repeats one means it once."""
    return list(dict.fromkeys(names))
