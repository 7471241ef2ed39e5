"""A client and a host of our own IPC; bench/flows.py measures their calls with and without tracing.

`Ipc` runs client and host in one thread, so that the noise of thread wakeups does not hide the
cost of tracing.
"""

from __future__ import annotations

import socket
from typing import Any

from _rounds import State, timed

from stretto import flows
from stretto.ipc.client import Client as IpcClient
from stretto.ipc.host import HostConnection, HostedService
from stretto.ipc.service import Method, Raw, ServiceDescriptor
from stretto.testing.connection_pair import ConnectionPair
from stretto.testing.fake_task_runner import FakeTaskRunner

CATEGORY = "bench.flows"
BODY = b"x" * 32

SERVICE = ServiceDescriptor("Bench", [Method("Echo", Raw, Raw)], {"Echo": CATEGORY})


def untraced() -> None:
    """Remove the hooks of flow tracing."""
    flows.uninstall()


def off() -> None:
    """Install the hooks of flow tracing, and disable the category of the calls."""
    flows.install()
    flows.disable(CATEGORY)


def on() -> None:
    """Install the hooks of flow tracing, and enable the category of the calls."""
    flows.install()
    flows.enable(CATEGORY)


def states(measure: Any) -> dict[str, State]:
    """Return three states to measure: flow tracing not installed, disabled, and enabled."""
    return {
        "untraced": State(measure, untraced),
        "off": State(measure, off),
        "on": State(measure, on),
    }


class Ipc:
    """A client and a host in one thread, connected by lists of frames."""

    def __init__(self) -> None:
        self._runner = FakeTaskRunner()
        self._ends = socket.socketpair()
        pair = ConnectionPair(self._runner)
        client = IpcClient(pair.client_outbox, self._ends[0])
        handlers = {"Echo": lambda request, deferred: deferred.resolve(request)}
        host = HostConnection(
            [HostedService(SERVICE, handlers)],
            pair.host_outbox,
            lambda _data: None,
            end=self._ends[1],
        )
        pair.connect(client, host)
        self._outboxes = (pair.client_outbox, pair.host_outbox)
        bound: list[Any] = []
        client.bind(SERVICE, bound.append)
        self._runner.run_until_idle()
        self._proxy = bound[0]
        self.states = states(timed(self._call))

    def _call(self) -> None:
        self._proxy.invoke("Echo", Raw(BODY), lambda _reply, _more: None)
        self._runner.run_until_idle()
        for outbox in self._outboxes:
            outbox.sent.clear()

    def close(self) -> None:
        for end in self._ends:
            end.close()
