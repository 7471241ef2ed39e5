"""The triggers of a config, compiled. Few sessions have any."""

from __future__ import annotations

from stretto.service.session.name_filter import RegexCompiler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.base.regex import Regex
    from stretto.protos.config import TraceConfig


class ConfiguredTrigger:
    """A trigger of a session's config."""

    __slots__ = ("_producers", "_trigger")

    def __init__(self, trigger: TraceConfig.TriggerConfig.Trigger, producers: Regex | None) -> None:
        """Create a trigger; `producers` matches names of producers that may activate it."""
        # Most fields are decoded only at an activation, because a config may have 14,000 triggers.
        self._trigger = trigger
        self._producers = producers

    @property
    def stop_delay_ms(self) -> int:
        """Delay in ms from the activation to its effect."""
        return self._trigger.stop_delay_ms

    def accepts(self, producer_name: str, count: int, random: Callable[[], float]) -> bool:
        """Return whether an activation takes effect.

        Args:
            producer_name: Name of the producer that activates the trigger.
            count: Number of the trigger's effective activations in the last 24 hours.
            random: Returns a random number in [0, 1).
        """
        if self._producers is not None and not self._producers.full_match(producer_name):
            return False
        trigger = self._trigger
        if trigger.skip_probability > 0 and random() < trigger.skip_probability:
            return False
        return not trigger.max_per_24_h or count < trigger.max_per_24_h


def compile_triggers(config: TraceConfig.TriggerConfig) -> dict[str, ConfiguredTrigger]:
    """Compile the triggers of a config; return them by name.

    Raises:
        ConfigError: A regular expression is invalid; the message contains its path.
    """
    compiler = RegexCompiler()
    configured = {}
    for index, trigger in enumerate(config.triggers):
        producers = None
        if trigger.has("producer_name_regex"):
            pattern = trigger.producer_name_regex
            field = f"trigger_config.triggers[{index}].producer_name_regex"
            producers = compiler.compile(pattern, field)
        configured[trigger.name] = ConfiguredTrigger(trigger, producers)
    return configured
