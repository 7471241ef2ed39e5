"""Perfetto's socket protocol: frames, services bound by name, requests and replies.

It is independent of tracing: a service is a name and a list of methods. `serve` and `connect` are
the server and the client of a unix socket; docs/ipc.md shows them. The protocol machines (`client`,
`host`) convert between bytes and frames; only `connection` and `listener` use sockets.

The names below load their modules when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.ipc.client import ServiceProxy
    from stretto.ipc.host import Deferred, HostedService
    from stretto.ipc.service import Method, Raw, ServiceDescriptor
    from stretto.ipc.unix import ClientConnection, Server, connect, serve

__all__ = [
    "ClientConnection",
    "Deferred",
    "HostedService",
    "Method",
    "Raw",
    "SelectorTaskRunner",
    "Server",
    "ServiceDescriptor",
    "ServiceProxy",
    "connect",
    "serve",
]

_MODULES = {
    "ClientConnection": "stretto.ipc.unix",
    "Deferred": "stretto.ipc.host",
    "HostedService": "stretto.ipc.host",
    "Method": "stretto.ipc.service",
    "Raw": "stretto.ipc.service",
    "SelectorTaskRunner": "stretto.base.selector_task_runner",
    "Server": "stretto.ipc.unix",
    "ServiceDescriptor": "stretto.ipc.service",
    "ServiceProxy": "stretto.ipc.client",
    "connect": "stretto.ipc.unix",
    "serve": "stretto.ipc.unix",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
