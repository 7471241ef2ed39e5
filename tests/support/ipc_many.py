"""Two processes connected by Stretto's protobuf IPC: four threads make calls of all kinds at once.

    python ipc_many.py SOCKET MESSAGES ENABLE_AT

This command runs the host, which starts the client. Each process starts tracing after its
ENABLE_AT-th message.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading

from stretto import _native, flows
from stretto.base.errors import ConfigError
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.unix_socket import UnixListener, UnixSocket
from stretto.ipc.client import Client, ServiceProxy
from stretto.ipc.connection import Connection
from stretto.ipc.host import Deferred, HostConnection, HostedService
from stretto.ipc.listener import Listener
from stretto.ipc.service import Method, Raw, ServiceDescriptor

CATEGORY = "test.greeter"
METHODS = ("Echo", "Count", "Later", "Refuse", "Hush")
MANY = ServiceDescriptor(
    "Many",
    [Method(name, Raw, Raw) for name in METHODS],
    {name: CATEGORY for name in METHODS if name != "Hush"},
)
THREADS = 4
IN_FLIGHT = 8
"""Calls of a thread whose replies are still to come."""


class EnableLater:
    """Counts messages; enables the service's category after the message with the given number."""

    def __init__(self, at: int) -> None:
        self._left = at
        flows.disable(CATEGORY)

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            flows.enable(CATEGORY)


class Host:
    """Serves one client until it disconnects."""

    def __init__(self, runner: SelectorTaskRunner, end: UnixSocket, enable_at: int) -> None:
        self._count = EnableLater(enable_at)
        self._draw = random.Random(enable_at)
        self._waiting: list[Deferred] = []
        connection = Connection(end, runner, _native.SendQueue(end.fileno()), runner.quit)
        handlers = {name: getattr(self, name.lower()) for name in METHODS}
        service = HostedService(MANY, handlers)
        machine = HostConnection([service], connection, connection.close_soon, end=connection)
        connection.start(machine)

    def echo(self, request: Raw, deferred: Deferred) -> None:
        """Reply to this call and to one earlier call that still waits for its reply."""
        self._count()
        deferred.resolve(request)
        if self._waiting:
            late = self._waiting.pop(self._draw.randrange(len(self._waiting)))
            late.resolve(Raw(b"late"))

    hush = echo

    def count(self, _request: Raw, deferred: Deferred) -> None:
        self._count()
        parts = self._draw.randrange(1, 5)
        for number in range(parts):
            deferred.resolve(Raw(b"%d" % number), has_more=number < parts - 1)

    def later(self, _request: Raw, deferred: Deferred) -> None:
        self._count()
        self._waiting.append(deferred)

    def refuse(self, _request: Raw, _deferred: Deferred) -> None:
        self._count()
        raise ConfigError("no")


class Caller:
    """Makes the calls of one client thread."""

    def __init__(self, proxy: ServiceProxy, count: EnableLater, messages: int, seed: int) -> None:
        self._proxy = proxy
        self._count = count
        self._messages = messages
        self._draw = random.Random(seed)
        self._room = threading.Semaphore(IN_FLIGHT)

    def talk(self) -> None:
        for number in range(self._messages):
            name = self._draw.choice(METHODS)
            if number % IN_FLIGHT == 0:
                name = "Echo"  # its handler also replies to an earlier call that waits
            one_way = name != "Later" and number % IN_FLIGHT and self._draw.random() < 0.4
            if not one_way:
                assert self._room.acquire(timeout=60)
            assert self._proxy.invoke(name, Raw(b"x"), None if one_way else self._on_reply)
            self._count()

    def _on_reply(self, _reply: Raw | None, more: bool) -> None:
        if not more:
            self._room.release()


def client(path: str, messages: int, enable_at: int) -> None:
    runner = SelectorTaskRunner()
    end = UnixSocket.connect(path)
    connection = Connection(end, runner, _native.SendQueue(end.fileno()), runner.quit)
    machine = Client(connection, connection)
    connection.start(machine)
    bound: list[ServiceProxy | None] = []
    machine.bind(MANY, bound.append)
    assert runner.run_until(lambda: bool(bound), 60_000)
    proxy, count = bound[0], EnableLater(enable_at)
    assert proxy is not None
    callers = [Caller(proxy, count, messages // THREADS, seed) for seed in range(THREADS)]
    threads = [threading.Thread(target=caller.talk) for caller in callers]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        runner.run_until(lambda: False, 5)
    answered: list[bool] = []
    # The handler of Echo also replies to one earlier call that still waits.
    while len(answered) < THREADS * IN_FLIGHT:
        proxy.invoke("Echo", Raw(), lambda _reply, _more: answered.append(True))
        before = len(answered)
        assert runner.run_until(lambda before=before: len(answered) > before, 60_000)
    connection.close()
    runner.close()


def host(path: str, messages: int, enable_at: int) -> None:
    runner = SelectorTaskRunner()
    listener = Listener(UnixListener(path), runner, lambda end: Host(runner, end, enable_at))
    command = [sys.executable, __file__, path, str(messages), str(enable_at), "client"]
    with subprocess.Popen(command) as child:
        runner.run()
    listener.close()
    runner.close()
    if child.returncode:
        raise SystemExit(child.returncode)


if __name__ == "__main__":
    sys.setswitchinterval(1e-4)
    flows.install()
    (client if sys.argv[4:] else host)(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    if flows.stats():
        raise SystemExit(f"without arrows: {flows.stats()}")
