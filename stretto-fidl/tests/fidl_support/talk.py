"""The test protocol Talk for the tests of the transport, with handlers, servers and clients."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stretto_fidl.bindings import ChannelEnd, channel, load
from stretto_fidl.compiler import compile_sources
from stretto_fidl.transport import Client, Deferred, DomainError, Server

SOURCE = """
library test.talk;
using zx;

open protocol Talk {
    strict Echo(struct { number uint32; }) -> (struct { number uint32; });
    flexible Divide(struct { a int32; b int32; }) -> (struct { quotient int32; }) error uint32;
    strict Later(struct { number uint32; }) -> (struct { number uint32; });
    strict Crash() -> ();
    strict Fire(struct { number uint32; });
    strict Pass(resource struct { what zx.Handle; }) -> (resource struct { what zx.Handle; });
    strict -> OnTick(struct { number uint32; });
    flexible -> OnRest();
};
"""

ZX = """
library zx;
type ObjType = strict enum : uint32 { NONE = 0; VMO = 3; CHANNEL = 4; EVENT = 5; };
type Rights = strict bits : uint32 { DUPLICATE = 1; SAME_RIGHTS = 0x80000000; };
resource_definition Handle : uint32 {
    properties {
        subtype ObjType;
        rights Rights;
    };
};
"""


def talk_source(*, traced: str = "", openness: str = "open") -> str:
    """Return the FIDL text of Talk; `traced` is its trace category, empty for none."""
    attribute = f'@trace("{traced}")\n' if traced else ""
    text = SOURCE.replace("open protocol", f"{attribute}{openness} protocol")
    if openness == "closed":
        text = text.replace("flexible", "strict")
    return text


def load_talk(*, traced: str = "", openness: str = "open") -> Any:
    """Compile and load the library of Talk; return a new namespace."""
    source = talk_source(traced=traced, openness=openness)
    ir = compile_sources({"talk.fidl": source}, dependencies={"zx.fidl": ZX})
    return load(ir)


talk = load_talk()


class Talker:
    """Handles the protocol Talk, and records the received messages."""

    def __init__(self, names: Any = talk) -> None:
        self.names = names
        self.fired: list[int] = []
        self.later: list[tuple[int, Deferred]] = []
        self.unknown: list[int] = []
        self.arrived = threading.Semaphore(0)
        """Counts the calls of `Later`."""

    def Echo(self, request: Any) -> Any:  # noqa: N802
        return self.names.TalkEchoResponse(number=request.number)

    def Divide(self, request: Any) -> Any:  # noqa: N802
        if not request.b:
            raise DomainError(7)
        return self.names.Talk_Divide_Response(quotient=request.a // request.b)

    def Later(self, request: Any) -> Deferred:  # noqa: N802
        deferred = Deferred()
        self.later.append((request.number, deferred))
        self.arrived.release()
        return deferred

    def Crash(self) -> None:  # noqa: N802
        raise ZeroDivisionError("on purpose")

    def Fire(self, request: Any) -> None:  # noqa: N802
        self.fired.append(request.number)

    def Pass(self, request: Any) -> Any:  # noqa: N802
        return self.names.TalkPassResponse(what=request.what)

    def on_unknown_method(self, ordinal: int) -> None:
        self.unknown.append(ordinal)

    def answer_later(self) -> None:
        """Reply to the unanswered calls of `Later` in reverse order."""
        while self.later:
            number, deferred = self.later.pop()
            deferred.resolve(self.names.TalkLaterResponse(number=number))


class Serving:
    """A FIDL server in a thread.

    Attributes:
        error: The exception that `serve` raised, or None.
    """

    def __init__(self, protocol: Any, end: ChannelEnd, handler: Any, **options: Any) -> None:
        self.server = Server(protocol, end, handler, **options)
        self.handler = handler
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self.server.serve()
        except Exception as error:
            self.error = error

    def join(self) -> None:
        """Wait until the server's thread ends."""
        self._thread.join(30)
        assert not self._thread.is_alive()


@contextmanager
def serving(end: ChannelEnd, handler: Any = None, protocol: Any = None) -> Iterator[Serving]:
    """Run a server in a thread during the block."""
    handler = Talker() if handler is None else handler
    there = Serving(handler.names.Talk if protocol is None else protocol, end, handler)
    try:
        yield there
    finally:
        there.server.close()
        there.join()


@contextmanager
def conversation(handler: Any = None, **options: Any) -> Iterator[tuple[Any, Serving]]:
    """Yield a connected client and server, which are closed after the block."""
    near, far = channel()
    with (
        serving(far, handler) as there,
        Client(there.handler.names.Talk, near, **options) as client,
    ):
        yield client, there
