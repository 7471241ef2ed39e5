"""The native code that runs for each message.

It has the same behaviour as the classes in `stretto.flows.ids` and `stretto.flows.tracer`."""

from __future__ import annotations

import stretto

TYPE_CHECKING = False
if TYPE_CHECKING or stretto.available():
    from stretto._native import FlowIds, MessageHook, MessageTemplates
else:  # Without the native part nothing is traced.
    FlowIds = MessageHook = MessageTemplates = object

__all__ = ["FlowIds", "MessageHook", "MessageTemplates"]
