"""A program of two processes; the trace has an arrow for every message between them. It takes less
than a second.

    stretto record examples/flow_demo.py     then open trace.pftrace at https://ui.perfetto.dev
    stretto flows trace.pftrace              calls by method: latency, queueing, service time

A shop and its customer call each other over a unix socket by Stretto's own protobuf IPC. Tracing
needs `flows.install()`, and a category for the methods of the service; in a .proto file it is

    service Shop {
      option (stretto.trace_all) = "shop";
      rpc Price(Item) returns (Money);
      ...
    }

Both ends compute the ids of the arrows, so no message contains an id.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

from stretto import flows, ipc

METHODS = ("Price", "Order", "Visit")
SHOP = ipc.ServiceDescriptor(
    "Shop",
    [ipc.Method(name, ipc.Raw, ipc.Raw) for name in METHODS],
    dict.fromkeys(METHODS, "shop"),  # in a generated module, this dict is SHOP_TRACE
)
ROUNDS = 20


def busy(seconds: float) -> None:
    """Keeps the processor busy for this time."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class Shop:
    """The shop's side of the connection to one customer."""

    def __init__(self, runner: ipc.SelectorTaskRunner) -> None:
        self._runner = runner
        handlers = {"Price": self.price, "Order": self.order, "Visit": self.visit}
        self.service = ipc.HostedService(SHOP, handlers)

    def price(self, item: ipc.Raw, deferred: ipc.Deferred) -> None:
        """Replies with a price at once."""
        busy(0.001)
        deferred.resolve(ipc.Raw(b"%d" % len(item.data)))

    def order(self, _item: ipc.Raw, deferred: ipc.Deferred) -> None:
        """Replies to an order in two parts: first that it is accepted, later that it is ready."""
        deferred.resolve(ipc.Raw(b"taken"), has_more=True)
        self._runner.post_delayed(lambda: deferred.resolve(ipc.Raw(b"ready")), 3)

    def visit(self, _visitor: ipc.Raw, _no_reply: ipc.Deferred) -> None:
        """Handles a visit, which is a one-way message."""
        busy(0.0005)


class Customer:
    """The customer; in each round it sends two visits, requests a price and sends an order."""

    def __init__(self, runner: ipc.SelectorTaskRunner, path: str) -> None:
        self._connection = ipc.connect(path, runner, on_disconnected=runner.quit)
        self._connection.bind(SHOP, self.begin)
        self._rounds = 0
        self.bought = 0

    def begin(self, shop: ipc.ServiceProxy | None) -> None:
        """Begins the first round; called when the connection is bound to the shop's service."""
        assert shop is not None
        self._shop = shop
        self.ask()

    def ask(self) -> None:
        """Runs one round: two one-way messages, then a call."""
        self._shop.invoke("Visit", ipc.Raw())
        self._shop.invoke("Visit", ipc.Raw())
        self._shop.invoke("Price", ipc.Raw(b"bread"), self.on_price)

    def on_price(self, _price: ipc.Raw | None, _more: bool) -> None:
        """Handles the reply with the price; requests the order."""
        self._shop.invoke("Order", ipc.Raw(b"bread"), self.on_order)

    def on_order(self, _answer: ipc.Raw | None, more: bool) -> None:
        """Handles one part of the reply to the order; the next round begins after the last part."""
        if more:
            return
        self.bought += 1
        self._rounds += 1
        if self._rounds < ROUNDS:
            self.ask()
        else:
            self._connection.close()


def customer(path: str) -> None:
    """Runs the customer, in the second process."""
    runner = ipc.SelectorTaskRunner()
    who = Customer(runner, path)
    runner.run()
    runner.close()
    print(f"bought {who.bought} loaves", file=sys.stderr)


def shop() -> None:
    """Runs the shop in the first process, which also starts the customer in a second process."""
    runner = ipc.SelectorTaskRunner()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/shop"
        server = ipc.serve(path, [Shop(runner).service], runner, on_disconnected=runner.quit)
        with subprocess.Popen([sys.executable, __file__, path]):
            runner.run()
        server.close()
    runner.close()


if __name__ == "__main__":
    flows.install()
    if sys.argv[1:]:
        customer(sys.argv[1])
    else:
        shop()
