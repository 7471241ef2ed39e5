"""Descriptions of services: a name, and methods in the order of their ids."""

from __future__ import annotations

from stretto.base.rpc_hooks import REPLY, RpcMethod

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import Protocol, Self

    class Message(Protocol):
        """A protobuf message, or another object with the same methods."""

        @classmethod
        def decode(cls, data: bytes, /) -> Self: ...
        def encode(self) -> bytes: ...

    class Outbox(Protocol):
        """A queue of outgoing frames: `_native.SendQueue`, or a queue in memory."""

        def push(self, frame: bytes, fd: int = -1) -> bool:
            """Send a frame; return False if the queue is full or broken: then nothing is sent."""

        def invoke(
            self, service_id: int, method_id: int, args: bytes, drop_reply: bool, fd: int = -1
        ) -> int:
            """Send an InvokeMethod frame; return its request id, 0 if it was refused."""

        def next_request_id(self) -> int:
            """Return an unused request id, for a frame that the caller builds."""


class Raw:
    """An encoded message, which its handler decodes itself."""

    __slots__ = ("data",)

    def __init__(self, data: bytes = b"") -> None:
        self.data = data

    @classmethod
    def decode(cls, data: bytes) -> Raw:
        return cls(data)

    def encode(self) -> bytes:
        return self.data


class Method:
    """A method: its name, and the types of request and reply.

    Args:
        name: The name, `Sync`.
        request: The type of requests; None: `SyncRequest` in `module`.
        reply: The type of replies; None: `SyncResponse` in `module`.
        module: A generated module. It creates the types when they are first used.
    """

    __slots__ = ("_module", "_reply", "_request", "name")

    def __init__(
        self,
        name: str,
        request: type[Message] | None = None,
        reply: type[Message] | None = None,
        *,
        module: ModuleType | None = None,
    ) -> None:
        self.name = name
        self._request = request
        self._reply = reply
        self._module = module

    @property
    def request(self) -> type[Message]:
        return self._request or self._of_module("Request")

    @property
    def reply(self) -> type[Message]:
        return self._reply or self._of_module("Response")

    def _of_module(self, suffix: str) -> type[Message]:
        made: type[Message] = getattr(self._module, self.name + suffix)
        return made


class ServiceDescriptor:
    """A service.

    Args:
        name: The name by which clients bind it.
        methods: The methods, in the order of their ids, which count from 1.
        trace: The category of each method that may be traced, by the method's name. Generated
            modules have this mapping as `NAME_TRACE`.
    """

    def __init__(
        self, name: str, methods: Sequence[Method], trace: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.methods = tuple(methods)
        self.by_name = {method.name: method for method in methods}
        self.traced = {
            method: RpcMethod(
                name, method, self.method_id(method), category, _describer(self.by_name[method])
            )
            for method, category in (trace or {}).items()
        }

    def method_id(self, name: str) -> int:
        """Return the id of a method, which is counted from 1."""
        return self.methods.index(self.by_name[name]) + 1


def _describer(method: Method) -> Callable[[int, bytes, int], object]:
    """Return the `RpcMethod.describe` function of a method."""

    def describe(kind: int, data: bytes, handles: int) -> object:
        del handles  # Passed descriptors are not part of the message.
        # These modules are imported here, because most traced programs don't need them.
        from stretto.protozero.excerpts import excerpt_of
        from stretto.protozero.message import Message

        cls = method.reply if kind == REPLY else method.request
        if not data or not issubclass(cls, Message):
            return None
        return excerpt_of(cls.decode(data))

    return describe
