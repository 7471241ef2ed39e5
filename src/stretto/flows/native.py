"""The native code that runs for each message; `stretto.flows.ids` and `tracer` specify it."""

from __future__ import annotations

import stretto

TYPE_CHECKING = False
if TYPE_CHECKING or stretto.available():
    from stretto._native import FlowIds, MessageHook, MessageTemplates
else:  # Without the native part nothing is traced.
    FlowIds = MessageHook = MessageTemplates = object

__all__ = ["FlowIds", "MessageHook", "MessageTemplates"]
