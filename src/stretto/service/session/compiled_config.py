"""A checked trace config with its compiled filters and triggers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from stretto import _native
    from stretto.protos.config import TraceConfig
    from stretto.service.session.configured_triggers import ConfiguredTrigger
    from stretto.service.session.requested_data_sources import RequestedDataSources


class CompiledConfig:
    """The config of a session, decoded and compiled.

    The object is created once, by `check_config`, and shared by a session and its clones.

    Attributes:
        config: The decoded config.
        requested: The requested data sources, with compiled producer filters.
        triggers: The triggers by name, with compiled producer filters.
        message_filter: The compiled trace filter; None without one.
    """

    def __init__(
        self,
        config: TraceConfig,
        requested: RequestedDataSources,
        triggers: Mapping[str, ConfiguredTrigger],
        message_filter: _native.MessageFilter | None,
    ) -> None:
        self.config = config
        self.requested = requested
        self.triggers = triggers
        self.message_filter = message_filter
