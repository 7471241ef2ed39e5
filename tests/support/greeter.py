"""An IPC service without tracing, for tests of the protocol."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stretto.base.errors import ConfigError
from stretto.ipc.host import HostedService
from stretto.ipc.service import Method, Raw, ServiceDescriptor
from stretto.protos.ipc import SyncRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.ipc.host import Deferred

GREETER = ServiceDescriptor(
    "Greeter",
    (
        Method("SayHello", Raw, Raw),
        Method("CountTo", Raw, Raw),
        Method("Later", Raw, Raw),
        Method("Refuse", Raw, Raw),
        Method("ReadFd", Raw, Raw),
        Method("GiveFd", Raw, Raw),
        Method("Strict", SyncRequest, SyncRequest),
        Method("NotImplemented", Raw, Raw),
        Method("Fail", Raw, Raw),
    ),
)


class Greeter:
    """The handlers of the IPC service. A test sets `take_fd`, which takes a received descriptor."""

    def __init__(self) -> None:
        self.hosted = HostedService(
            GREETER,
            {
                "SayHello": self._say_hello,
                "CountTo": self._count_to,
                "Later": self._later,
                "Refuse": self._refuse,
                "ReadFd": self._read_fd,
                "GiveFd": self._give_fd,
                "Strict": self._strict,
                "Fail": self._fail,
            },
        )
        self.calls: list[bytes] = []
        self.pending: list[Deferred] = []
        self.take_fd: Callable[[], int] = lambda: -1
        self.fd_to_give = -1

    def _say_hello(self, request: Raw, deferred: Deferred) -> None:
        self.calls.append(request.data)
        deferred.resolve(Raw(b"hello " + request.data))

    def _count_to(self, request: Raw, deferred: Deferred) -> None:
        count = int(request.data)
        for number in range(1, count + 1):
            deferred.resolve(Raw(b"%d" % number), has_more=number < count)

    def _later(self, _request: Raw, deferred: Deferred) -> None:
        self.pending.append(deferred)

    def _refuse(self, _request: Raw, _deferred: Deferred) -> None:
        raise ConfigError("no")

    def _fail(self, _request: Raw, _deferred: Deferred) -> None:
        raise ZeroDivisionError("a bug")

    def _read_fd(self, _request: Raw, deferred: Deferred) -> None:
        fd = self.take_fd()
        deferred.resolve(Raw(os.read(fd, 100) if fd >= 0 else b"none"))
        if fd >= 0:
            os.close(fd)

    def _give_fd(self, _request: Raw, deferred: Deferred) -> None:
        deferred.resolve(Raw(b"take"), fd=self.fd_to_give)

    def _strict(self, _request: SyncRequest, deferred: Deferred) -> None:
        self.calls.append(b"strict")
        deferred.resolve(SyncRequest())
