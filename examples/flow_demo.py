"""Two processes that talk, and an arrow for every message. It takes less than a second.

    stretto record examples/flow_demo.py     then open trace.pftrace at https://ui.perfetto.dev
    stretto flows trace.pftrace              calls by method: latency, queueing, service time

A shop and its customer speak over a unix socket by Stretto's own protobuf IPC. All that is said
about tracing is `flows.install()`, and the category that the service's methods have; in a .proto
file it would be

    service Shop {
      option (stretto.trace_all) = "shop";
      rpc Price(Item) returns (Money);
      ...
    }

Ids of arrows are computed at both ends, and not sent.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

from stretto import _native, flows
from stretto.base.selector_task_runner import SelectorTaskRunner
from stretto.base.unix_socket import UnixListener, UnixSocket
from stretto.ipc.client import Client, ServiceProxy
from stretto.ipc.connection import Connection
from stretto.ipc.host import Deferred, HostConnection, HostedService
from stretto.ipc.listener import Listener
from stretto.ipc.service import Method, Raw, ServiceDescriptor

METHODS = ("Price", "Order", "Visit")
SHOP = ServiceDescriptor(
    "Shop",
    [Method(name, Raw, Raw) for name in METHODS],
    dict.fromkeys(METHODS, "shop"),  # as a generated module has it: SHOP_TRACE
)
ROUNDS = 20


def busy(seconds: float) -> None:
    """Work, not sleep."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class Shop:
    """Serves one customer, until they hang up."""

    def __init__(self, runner: SelectorTaskRunner, end: UnixSocket) -> None:
        self._runner = runner
        connection = Connection(end, runner, _native.SendQueue(end.fileno()), runner.quit)
        handlers = {
            "Price": self.price,
            "Order": self.order,
            "Visit": lambda _visitor, _nobody_waits: busy(0.0005),
        }
        service = HostedService(SHOP, handlers)
        machine = HostConnection([service], connection, connection.close_soon, end=connection)
        connection.start(machine)

    def price(self, item: Raw, deferred: Deferred) -> None:
        """Answer at once."""
        busy(0.001)
        deferred.resolve(Raw(b"%d" % len(item.data)))

    def order(self, _item: Raw, deferred: Deferred) -> None:
        """Answer in two parts: that it is taken, and later that it is ready."""
        deferred.resolve(Raw(b"taken"), has_more=True)
        self._runner.post_delayed(lambda: deferred.resolve(Raw(b"ready")), 3)


class Customer:
    """Asks, orders, and looks in now and then."""

    def __init__(self, runner: SelectorTaskRunner, path: str) -> None:
        end = UnixSocket.connect(path)
        self._runner = runner
        self._connection = Connection(end, runner, _native.SendQueue(end.fileno()), runner.quit)
        client = Client(self._connection, self._connection)
        self._connection.start(client)
        client.bind(SHOP, self.begin)
        self._rounds = 0
        self.bought = 0

    def begin(self, shop: ServiceProxy | None) -> None:
        """The shop is known: the first round."""
        assert shop is not None
        self._shop = shop
        self.ask()

    def ask(self) -> None:
        """One round: two visits that nobody answers, then a question."""
        self._shop.invoke("Visit", Raw())
        self._shop.invoke("Visit", Raw())
        self._shop.invoke("Price", Raw(b"bread"), self.on_price)

    def on_price(self, _price: Raw | None, _more: bool) -> None:
        """Order it."""
        self._shop.invoke("Order", Raw(b"bread"), self.on_order)

    def on_order(self, _answer: Raw | None, more: bool) -> None:
        """Wait until it is ready, then the next round."""
        if more:
            return
        self.bought += 1
        self._rounds += 1
        if self._rounds < ROUNDS:
            self.ask()
        else:
            self._connection.close()


def customer(path: str) -> None:
    """The second process."""
    runner = SelectorTaskRunner()
    who = Customer(runner, path)
    runner.run()
    runner.close()
    print(f"bought {who.bought} loaves", file=sys.stderr)


def shop() -> None:
    """The first process, which starts the second."""
    runner = SelectorTaskRunner()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/shop"
        listener = Listener(UnixListener(path), runner, lambda end: Shop(runner, end))
        with subprocess.Popen([sys.executable, __file__, path]):
            runner.run()
        listener.close()
    runner.close()


if __name__ == "__main__":
    flows.install()
    if sys.argv[1:]:
        customer(sys.argv[1])
    else:
        shop()
