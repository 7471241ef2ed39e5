"""FIDL over unix sockets: channels, clients and servers, blocking and for asyncio.

    message_socket      bytes and handles over a socket
    endpoint            messages with headers, told to the seam of `stretto.base.rpc_hooks`
    conversation        what a client keeps: who waits, what came unasked
    interaction         what a server makes of a message
    client, server      for threads; async_client, async_server for asyncio

Tracing isn't known here; docs/fidl.md shows how to use it, docs/flows.md what is traced.
"""

from __future__ import annotations

from stretto.fidl.transport.async_client import AsyncClient
from stretto.fidl.transport.async_server import AsyncServer
from stretto.fidl.transport.client import Client
from stretto.fidl.transport.conversation import EventMessage
from stretto.fidl.transport.deferred import Deferred
from stretto.fidl.transport.errors import (
    CallTimeoutError,
    ClosedError,
    DomainError,
    PeerError,
    UnknownMethodError,
)
from stretto.fidl.transport.listener import Listener, connect
from stretto.fidl.transport.server import Server

__all__ = [
    "Client",
    "AsyncClient",
    "Server",
    "AsyncServer",
    "Deferred",
    "EventMessage",
    "Listener",
    "connect",
    "ClosedError",
    "CallTimeoutError",
    "DomainError",
    "PeerError",
    "UnknownMethodError",
]
