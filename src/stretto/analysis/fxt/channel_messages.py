"""Messages of Zircon's channels, as its kernel traces them: category `kernel:ipc`.

    ChannelMessage   a duration of no length for each message written or read: `ordinal`
    ChannelFlow      the flow's point in it

    zx_channel_call       begin ─── step ─── step ─── end       one flow of four points
    any other message     begin ─── end                         and another one for its reply

A flow's id says by its bit 31 whether it was made of a transaction id; then the reply has the same
one, and goes from the process that read the request. Here they become messages as `stretto flows`
knows them: with `role`, `kind` and `method`, and a name which `stretto fidl symbolize` finds.

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
    """The name of a message, by the arguments of its duration.

    Fuchsia's own tools add a `method` to the ordinals that they know.
    """
    values = {name: value for name, _, value in arguments}
    method, ordinal = values.get("method"), values.get("ordinal")
    if isinstance(method, str) and method:
        return method
    return f"ordinal {ordinal & (1 << 64) - 1:#x}" if isinstance(ordinal, int) else None


class ChannelRoles:
    """Tells what the points of a flow are."""

    def __init__(self) -> None:
        self._readers: dict[int, int] = {}

    def role(self, kind: int, flow: Flow, process: int) -> tuple[str, str]:
        """The role and kind of a message.

        Args:
            kind: FLOW_BEGIN, FLOW_STEP or FLOW_END.
            flow: Its flow; the point is counted already.
            process: Of the thread that wrote or read it.
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
