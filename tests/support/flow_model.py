"""A simple model of flow ids, computed from the list of all messages of a connection.

It gives each message a name instead of an id: an arrow connects messages with equal names.
"""

from __future__ import annotations

from typing import NamedTuple


class Sent(NamedTuple):
    """An RPC message that the client or the server has sent."""

    to_server: bool
    kind: int
    txid: int
    answer: int = 0


REPLY = 3


def names(messages: list[Sent]) -> list[tuple[object, ...]]:
    """Return the name of each message; all messages have the same direction."""
    result: list[tuple[object, ...]] = []
    for at, message in enumerate(messages):
        if message.kind == REPLY and message.answer == 0:
            result.append(("call", message.txid))
            continue
        anchors = [
            (index, txid)
            for index, (_, _, txid, answer) in enumerate(messages[: at + 1])
            if txid and not answer
        ]
        index, txid = anchors[-1] if anchors else (-1, 0)
        if index == at:
            result.append(("call", message.txid))
        else:
            result.append(("since", message.to_server, txid, at - index))
    return result
