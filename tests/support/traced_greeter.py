"""A service whose RPC methods are traced, and both ends of a connection to it."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from stretto import flows
from stretto.base.errors import ConfigError
from stretto.ipc.client import Client, ServiceProxy
from stretto.ipc.host import Deferred, HostConnection, HostedService
from stretto.ipc.service import Method, Raw, ServiceDescriptor
from stretto.testing.connection_pair import ConnectionPair
from stretto.testing.fake_task_runner import FakeTaskRunner

METHODS = ("Echo", "Count", "Later", "Refuse", "Crash", "Hush")
TRACED = ServiceDescriptor(
    "Traced",
    [Method(name, Raw, Raw) for name in METHODS],
    {name: "test.greeter" for name in METHODS if name != "Hush"},
)


@contextmanager
def flows_installed(
    scheme: str = "anchored", *, own_ports: bool = False, bodies: bool | Sequence[str] = False
) -> Iterator[None]:
    """Install flow tracing during the block."""
    flows.install(scheme, own_ports=own_ports, bodies=bodies)
    try:
        yield
    finally:
        flows.uninstall()


class TracedGreeter:
    """An RPC client and an RPC host in one thread; a task runner delivers their frames."""

    def __init__(self, *, flow_key: int = 0, sockets: bool = True) -> None:
        self.runner = FakeTaskRunner()
        self.ends = socket.socketpair()
        near, far = self.ends if sockets else (None, None)
        self.pair = ConnectionPair(self.runner)
        self.later: list[Deferred] = []
        handlers = {name: getattr(self, f"_{name.lower()}") for name in METHODS}
        self.client = Client(self.pair.client_outbox, near)
        self.host = HostConnection(
            [HostedService(TRACED, handlers)], self.pair.host_outbox, lambda: None, end=far
        )
        self.pair.connect(self.client, self.host)
        self.replies: list[Raw | None] = []
        bound: list[ServiceProxy | None] = []
        self.client.bind(TRACED, bound.append, flow_key=flow_key)
        self.runner.run_until_idle()
        assert bound[0] is not None
        self.proxy = bound[0]

    def call(self, name: str, data: bytes = b"", *, one_way: bool = False) -> None:
        """Queue a request, which `run` delivers."""
        on_reply = None if one_way else lambda reply, _more: self.replies.append(reply)
        self.proxy.invoke(name, Raw(data), on_reply)

    def run(self) -> None:
        """Deliver all queued frames."""
        self.runner.run_until_idle()

    def close(self) -> None:
        """Close the sockets."""
        self.client.close()
        self.host.close()
        for end in self.ends:
            end.close()

    def _echo(self, request: Raw, deferred: Deferred) -> None:
        deferred.resolve(request)

    _hush = _echo

    def _count(self, request: Raw, deferred: Deferred) -> None:
        count = int(request.data)
        for number in range(1, count + 1):
            deferred.resolve(Raw(b"%d" % number), has_more=number < count)

    def _later(self, _request: Raw, deferred: Deferred) -> None:
        self.later.append(deferred)

    def _refuse(self, _request: Raw, _deferred: Deferred) -> None:
        raise ConfigError("no")

    def _crash(self, _request: Raw, _deferred: Deferred) -> None:
        raise ZeroDivisionError
