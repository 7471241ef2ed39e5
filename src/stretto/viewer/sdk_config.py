"""Finds recordings of the UI that ask for track events, but for no category of them.

The UI's record page sends such a config if *Perfetto SDK* is on and no category is given. It
disables all categories, so the trace has no track events, and nothing says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.base.errors import DecodeError
from stretto.ipc.frames import HEADER_BYTES
from stretto.protos.ipc import EnableTracingRequest, IPCFrame

if TYPE_CHECKING:
    from stretto.protos.config import DataSourceConfig

ADVICE = (
    "the page records Perfetto SDK without a category, so there will be no track events: name some "
    "under `Additional categories`, or * for all"
)


def lacks_categories(message: bytes) -> bool:
    """Whether a message of the page starts a recording of track events without a category.

    Args:
        message: one frame, as the UI sends them.
    """
    try:
        call = IPCFrame.decode(message[HEADER_BYTES:]).msg_invoke_method
        request = EnableTracingRequest.decode(call.args_proto) if call else None
    except (DecodeError, UnicodeDecodeError):
        return False
    if request is None or request.trace_config is None:
        return False
    configs = [source.config for source in request.trace_config.data_sources]
    asked = [config for config in configs if config and config.name == "track_event"]
    return bool(asked) and not any(map(_has_category, asked))


def _has_category(config: DataSourceConfig) -> bool:
    events = config.track_event_config
    if events is None or "*" not in events.disabled_categories:
        return True
    return bool(events.enabled_categories or events.enabled_tags)
