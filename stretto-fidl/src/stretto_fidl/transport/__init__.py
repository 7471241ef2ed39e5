"""FIDL over unix sockets: channels, clients and servers, blocking and for asyncio.

    message_socket      bytes and handles over a socket
    endpoint            messages with headers; calls the hooks of `stretto.base.rpc_hooks`
    conversation        the state of a client: callers that wait, events
    interaction         a server's reaction to a message
    client, server      for threads; async_client, async_server for asyncio

This package does not import the tracer. It calls the hooks of `stretto.base.rpc_hooks`, which
`stretto.flows.install()` sets. docs/transport.md describes how to use this package. Stretto's
docs/flows.md describes what is traced.
"""

from __future__ import annotations

from stretto_fidl.transport.async_client import AsyncClient
from stretto_fidl.transport.async_server import AsyncServer
from stretto_fidl.transport.client import Client
from stretto_fidl.transport.conversation import EventMessage
from stretto_fidl.transport.deferred import Deferred
from stretto_fidl.transport.errors import (
    CallTimeoutError,
    ClosedError,
    DomainError,
    PeerError,
    UnknownMethodError,
)
from stretto_fidl.transport.listener import Listener, connect
from stretto_fidl.transport.server import Server

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
