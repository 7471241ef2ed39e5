"""Flows of any stream whose both ends know where messages begin and end; no byte is added.

    flow = MessageFlows(writer.get_extra_info("socket"), category="chat", is_server=False)

    with flow.sending("line"):                    line = await reader.readline()
        writer.write(line)                        with flow.handling("line"):
                                                      ...

The n-th message that one end sends is the n-th that the other one receives: so both ends make
the object before the first message, and use it for every message. `sending` holds a lock while
its block writes: the order of counting is the order on the wire. One thread, or one task, reads.
"""

from __future__ import annotations

from _thread import RLock
from contextlib import contextmanager, nullcontext

from stretto.base import rpc_hooks
from stretto.base.rpc_hooks import ONE_WAY, RpcChannel, RpcMethod, switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.base.rpc_hooks import End


class MessageFlows:
    """One end of a stream.

    Args:
        end: The socket, or whatever has its `fileno()`.
        category: Under which messages are traced.
        is_server: Which end it is; the other end says the opposite.
        service: What the messages' methods belong to; the argument `service`.
        key: Names the stream at both ends, if the kernel shall not be asked
            (`stretto.flows.channel_key.nonce`).
    """

    def __init__(
        self, end: End | None, *, category: str, is_server: bool, service: str = "", key: int = 0
    ) -> None:
        switch(category)
        self._channel = RpcChannel(end, is_server=is_server, numbered=True, key=key)
        self._category = category
        self._service = service
        self._lock = RLock()
        # Numbers of both directions, never the same: odd ones go to the server.
        self._sent = 2 if is_server else 1
        self._received = 1 if is_server else 2

    @contextmanager
    def sending(self, name: str, *, size: int = 0) -> Iterator[None]:
        """Around the write of one message; an exception means that it was not written."""
        hooks = rpc_hooks.hooks
        with self._lock:
            stamp = 0 if hooks is None else hooks.now()
            yield
            number = self._sent
            self._sent += 2
            if hooks is not None:
                method = RpcMethod(self._service, name, 0, self._category)
                hooks.sent(self._channel, stamp, method, ONE_WAY, number, size)

    @contextmanager
    def handling(self, name: str, *, size: int = 0) -> Iterator[None]:
        """Around what is done about one message that was read."""
        number = self._received
        self._received += 2
        hooks = rpc_hooks.hooks
        told = None
        if hooks is not None:
            method = RpcMethod(self._service, name, 0, self._category)
            told = hooks.received(self._channel, method, ONE_WAY, number, size)
        with told or nullcontext():
            yield
