"""Messages of Zircon's channels, traced by the kernel: category `kernel:ipc`.

    ChannelMessage   a zero-length duration for each message written or read: `ordinal`
    ChannelFlow      a point of the message's flow, inside the duration

    zx_channel_call       begin ─── step ─── step ─── end       one flow of four points
    any other message     begin ─── end                         its reply has another flow

Bit 31 of a flow's id is set if the id was made from a transaction id. Then the reply has the same
id as the request, and is sent by the process that read the request.

The importer adds the arguments that `stretto flows` expects: `role`, `kind` and `method`. It also
adds a name that `stretto fidl symbolize` can replace.

Source: the `kernel:ipc` events of Fuchsia's channel dispatcher.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.fxt import format as fxt

if TYPE_CHECKING:
    from stretto.analysis.fxt.flow_scopes import Flow

CATEGORY, MESSAGE, FLOW = "kernel:ipc", "ChannelMessage", "ChannelFlow"
_HAS_TXID = 1 << 31
_MAX_REQUESTS = 1 << 16
_CALL = (("send", "request"), ("receive", "request"), ("send", "reply"), ("receive", "reply"))


def message_name(arguments: tuple[tuple[str, int, object], ...]) -> str | None:
    """Return the name of a message, from the arguments of its duration; None if it has none.

    Fuchsia's own tools add a `method` to the ordinals that they can resolve.
    """
    values = {name: value for name, _, value in arguments}
    method, ordinal = values.get("method"), values.get("ordinal")
    if isinstance(method, str) and method:
        return method
    return f"ordinal {ordinal & (1 << 64) - 1:#x}" if isinstance(ordinal, int) else None


class ChannelRoles:
    """Determines the role of each point of a channel's flows."""

    def __init__(self) -> None:
        self._readers: dict[int, int] = {}

    def role(self, kind: int, flow: Flow, process: int) -> tuple[str, str]:
        """Return the role and the kind of a message.

        Args:
            kind: FLOW_BEGIN, FLOW_STEP or FLOW_END.
            flow: The flow of the message; it already counts this point.
            process: The process that wrote or read the message.
        """
        if kind == fxt.FLOW_STEP:
            return _CALL[1 if flow.points % 2 == 0 else 2]
        if kind == fxt.FLOW_END and flow.points > 2:
            return _CALL[3]
        is_begin = kind == fxt.FLOW_BEGIN
        if not flow.number & _HAS_TXID:
            return ("send" if is_begin else "receive"), "one-way"
        if is_begin:
            if self._readers.pop(flow.number, None) == process:
                flow.is_reply = True
                return _CALL[2]
            return _CALL[0]
        if flow.is_reply:
            return _CALL[3]
        self._readers[flow.number] = process
        if len(self._readers) > _MAX_REQUESTS:
            self._readers.pop(next(iter(self._readers)))
        return _CALL[1]
