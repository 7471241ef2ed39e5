"""RelayPort, the service's side: clocks and system information of other machines."""

from __future__ import annotations

from typing import Any

import pytest

from stretto.ipc.client import Client, ServiceProxy
from stretto.ipc.host import HostConnection
from stretto.ipc.service import Raw
from stretto.ports.endpoints import RelayEndpoint
from stretto.ports.peer import Peer, machine_id
from stretto.ports.relay_port import RELAY_PORT
from stretto.ports.remote_relay import MAX_CLOCKS, RemoteRelay
from stretto.protos import ipc
from stretto.protos.ipc import IPCFrame
from stretto.protos.trace import SystemInfo
from stretto.testing.connection_pair import ConnectionPair
from stretto.testing.fake_task_runner import FakeTaskRunner


class Endpoint:
    """A service's relay endpoint that records each call in a log."""

    def __init__(self, log: list[Any], machine: int) -> None:
        self.log = log
        log.append(("connect", machine))

    def init_relay(self, system_info: bytes) -> None:
        self.log.append(("init", SystemInfo.decode(system_info)))

    def sync_clock(self, clocks: Any, *, update: bool) -> None:
        self.log.append(("sync", clocks, update))

    def disconnect(self) -> None:
        self.log.append(("disconnect",))


class Link:
    """A relay client and the service's RemoteRelay, connected in memory."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.runner = FakeTaskRunner()
        self.pair = ConnectionPair(self.runner)
        self.peer = Peer(address="192.0.2.1:10")
        self.hosted = RemoteRelay(self.connect, self.peer)
        self.client = Client(self.pair.client_outbox)
        self.host = HostConnection(
            [self.hosted.service], self.pair.host_outbox, lambda: None, self.peer.set_identity
        )
        self.pair.connect(self.client, self.host)

    def connect(self, machine: int) -> RelayEndpoint:
        return Endpoint(self.log, machine)

    def introduce(self) -> None:
        self.host.receive(
            IPCFrame(set_peer_identity=IPCFrame.SetPeerIdentity(machine_id_hint="box")).encode()
        )

    def call(self, name: str, request: Any) -> list[Any]:
        bound: list[ServiceProxy | None] = []
        self.client.bind(RELAY_PORT, bound.append)
        self.runner.run_until_idle()
        assert bound[0] is not None
        replies: list[Any] = []
        bound[0].invoke(name, request, lambda reply, _more: replies.append(reply))
        self.runner.run_until_idle()
        return replies


@pytest.fixture
def link() -> Link:
    return Link()


def sync(phase: int, *clocks: tuple[int, int]) -> ipc.SyncClockRequest:
    made = [ipc.SyncClockRequest.Clock(clock_id=key, timestamp=time) for key, time in clocks]
    return ipc.SyncClockRequest(phase=phase, clocks=made)


def test_method_ids_equal_those_of_perfetto() -> None:
    assert {name: RELAY_PORT.method_id(name) for name in RELAY_PORT.by_name} == (
        ipc.RELAY_PORT_METHODS
    )


def test_relay_reports_system_and_clocks_of_its_machine(link: Link) -> None:
    link.introduce()
    assert link.call("InitRelay", ipc.InitRelayRequest(system_info=SystemInfo(machine_name="b")))
    assert link.call("SyncClock", sync(ipc.SyncClockRequest.PING, (6, 100), (1, 2**64 - 1)))
    assert link.call("SyncClock", sync(ipc.SyncClockRequest.UPDATE, (6, 101)))
    link.hosted.disconnected()
    link.hosted.disconnected()
    assert link.log == [
        ("connect", machine_id("box", "")),
        ("init", SystemInfo(machine_name="b")),
        ("sync", [(6, 100), (1, 2**64 - 1)], False),
        ("sync", [(6, 101)], True),
        ("disconnect",),
    ]


def test_relay_without_system_info_is_not_connected(link: Link) -> None:
    assert link.call("InitRelay", ipc.InitRelayRequest()) != [None]
    link.hosted.disconnected()
    assert link.log == []


def test_number_of_clocks_is_limited(link: Link) -> None:
    link.call("SyncClock", sync(1, *[(number, number) for number in range(1000)]))
    assert len(link.log[-1][1]) == MAX_CLOCKS


def test_malformed_system_info_is_rejected(link: Link) -> None:
    assert link.call("InitRelay", Raw(b"\x0a\x02\x0a\xff")) == [None]
    assert link.log == []
