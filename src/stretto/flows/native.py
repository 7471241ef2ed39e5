"""What is done for each message, in C; its models are in `stretto.flows.ids` and `tracer`."""

from __future__ import annotations

import stretto

TYPE_CHECKING = False
if TYPE_CHECKING or stretto.available():
    from stretto._native import FlowIds, MessageHook, MessageTemplates
else:  # nothing is traced
    FlowIds = MessageHook = MessageTemplates = object

__all__ = ["FlowIds", "MessageHook", "MessageTemplates"]
