"""Server and client of a unix socket on one task runner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto import ipc
from stretto.base.errors import TransportError

pytestmark = pytest.mark.skipif(not stretto.available(), reason="needs the native send queue")

SHOP = ipc.ServiceDescriptor("Shop", [ipc.Method("Price", ipc.Raw, ipc.Raw)])
OTHER = ipc.ServiceDescriptor("Other", [])


@pytest.fixture
def runner() -> Iterator[ipc.SelectorTaskRunner]:
    made = ipc.SelectorTaskRunner()
    yield made
    made.close()


class Shop:
    """A server that counts the clients that disconnected."""

    def __init__(self, runner: ipc.SelectorTaskRunner, path: str, **options: Any) -> None:
        self.left = 0
        service = ipc.HostedService(SHOP, {"Price": self.price})
        self.server = ipc.serve(path, [service], runner, on_disconnected=self.on_left, **options)

    def price(self, item: ipc.Raw, deferred: ipc.Deferred) -> None:
        deferred.resolve(ipc.Raw(item.data.upper()))

    def on_left(self) -> None:
        self.left += 1


def bound(runner: ipc.SelectorTaskRunner, client: ipc.ClientConnection, service: Any) -> Any:
    """Return the proxy of a service; None if the server doesn't host the service."""
    proxies: list[Any] = []
    client.bind(service, proxies.append)
    runner.run_until(lambda: proxies != [], 30_000)
    return proxies[0]


@pytest.fixture
def shop(runner: ipc.SelectorTaskRunner, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(runner, f"{tmp_path}/shop")
    yield made
    made.server.close()


def wait(runner: ipc.SelectorTaskRunner, predicate: Callable[[], bool]) -> None:
    runner.run_until(predicate, 30_000)
    assert predicate()


def test_call_over_a_unix_socket_is_answered(
    runner: ipc.SelectorTaskRunner, shop: Shop, tmp_path: Path
) -> None:
    client = ipc.connect(f"{tmp_path}/shop", runner)
    proxy = bound(runner, client, SHOP)
    replies: list[Any] = []
    proxy.invoke("Price", ipc.Raw(b"bread"), lambda *reply: replies.append(reply))
    wait(runner, lambda: replies != [])
    ((reply, more),) = replies
    assert (reply.data, more) == (b"BREAD", False)
    client.close()


def test_unknown_service_is_bound_as_none(
    runner: ipc.SelectorTaskRunner, shop: Shop, tmp_path: Path
) -> None:
    client = ipc.connect(f"{tmp_path}/shop", runner)
    assert bound(runner, client, OTHER) is None
    client.close()


def test_client_and_server_are_notified_of_a_disconnection(
    runner: ipc.SelectorTaskRunner, shop: Shop, tmp_path: Path
) -> None:
    ended: list[int] = []
    clients = [
        ipc.connect(f"{tmp_path}/shop", runner, on_disconnected=lambda: ended.append(1))
        for _ in range(2)
    ]
    wait(runner, lambda: shop.server.client_count == 2)
    clients[0].close()
    wait(runner, lambda: shop.left == 1)
    assert (shop.server.client_count, ended) == (1, [1])
    shop.server.close()
    wait(runner, lambda: ended == [1, 1])
    assert [client.connected for client in clients] == [False, False]
    assert (shop.server.client_count, shop.left) == (0, 2)


def test_closed_server_removes_its_socket_file(
    runner: ipc.SelectorTaskRunner, shop: Shop, tmp_path: Path
) -> None:
    shop.server.close()
    assert not (tmp_path / "shop").exists()
    with pytest.raises(TransportError):
        ipc.connect(f"{tmp_path}/shop", runner)


def test_socket_file_has_the_given_permissions(
    runner: ipc.SelectorTaskRunner, tmp_path: Path
) -> None:
    for mode in (0o600, 0o666):
        made = Shop(runner, f"{tmp_path}/{mode}", mode=mode)
        assert (tmp_path / str(mode)).stat().st_mode & 0o777 == mode
        made.server.close()


def test_public_names_exist() -> None:
    for name in ipc.__all__:
        assert getattr(ipc, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        getattr(ipc, "nothing")  # noqa: B009
