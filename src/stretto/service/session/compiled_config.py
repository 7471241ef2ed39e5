"""A checked trace config with all that was compiled from it while it was checked."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from stretto import _native
    from stretto.protos.config import TraceConfig
    from stretto.service.session.triggers import WantedTrigger
    from stretto.service.session.wanted_data_sources import WantedDataSources


class CompiledConfig:
    """The config of a session in the form in which the session uses it.

    Made once, by `check_config`; a session and its clones share it.

    Attributes:
        config: The decoded config.
        wanted: Its data sources, with compiled producer filters.
        triggers: Its triggers by name, with compiled producer filters.
        message_filter: Its compiled trace filter; None without one.
    """

    __slots__ = ("config", "message_filter", "triggers", "wanted")

    def __init__(
        self,
        config: TraceConfig,
        wanted: WantedDataSources,
        triggers: Mapping[str, WantedTrigger],
        message_filter: _native.MessageFilter | None,
    ) -> None:
        self.config = config
        self.wanted = wanted
        self.triggers = triggers
        self.message_filter = message_filter
