"""A traced FIDL protocol, and a program of two processes that talk it.

One-way messages and events are as long as their serial number says: so a test finds a message at
both ends by its size. Run as a program it is a server, which starts a client of four threads:

    python fidl_flow.py SOCKET MESSAGES ENABLE_AT

and both begin to trace on their own, behind their ENABLE_AT-th message.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from typing import Any

import stretto
from fidl_support.child import accept_from
from stretto import flows
from stretto_fidl.bindings import load
from stretto_fidl.compiler import compile_sources
from stretto_fidl.transport import Client, ClosedError, DomainError, Listener, Server, connect

CATEGORY = "test.fidl"
THREADS = 4
LARGEST = 8000
"""Serial numbers end here: each takes eight bytes."""

SOURCE = f"""
library test.flow;

@trace("{CATEGORY}")
open protocol Flow {{
    flexible Ask(struct {{ number uint32; }}) -> (struct {{ number uint32; }}) error uint32;
    strict Later(struct {{ number uint32; }}) -> (struct {{ number uint32; }});
    strict Tell(struct {{ padding vector<uint64>:{LARGEST}; }});
    @trace("off")
    strict Hush(struct {{ padding vector<uint64>:{LARGEST}; }});
    strict -> OnTell(struct {{ padding vector<uint64>:{LARGEST}; }});
}};
"""

flow: Any = load(compile_sources({"flow.fidl": SOURCE}))


class Flow:
    """Handles it for threads; every seventh question is answered with an error."""

    def __init__(self, on_message: Any = None) -> None:
        self.on_message = on_message or (lambda _size: None)

    def Ask(self, request: Any) -> Any:  # noqa: N802
        self.on_message(0)
        if request.number % 7 == 0:
            raise DomainError(request.number)
        return flow.Flow_Ask_Response(number=request.number)

    def Later(self, request: Any) -> Any:  # noqa: N802
        self.on_message(0)
        return flow.FlowLaterResponse(number=request.number)

    def Tell(self, request: Any) -> None:  # noqa: N802
        self.on_message(len(request.padding))

    Hush = Tell


def padding(serial: int) -> list[int]:
    """Which makes a message as long as its serial number says."""
    return [0] * serial


class _EnableLater:
    """Counts messages, and enables the category behind one of them."""

    def __init__(self, at: int) -> None:
        self._left = at
        flows.disable(CATEGORY)

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            flows.enable(CATEGORY)


def server(path: str, messages: int, enable_at: int) -> None:
    """Answer, and send an event behind every tenth message."""
    count = _EnableLater(enable_at)
    seen = 0

    def on_message(_size: int) -> None:
        nonlocal seen
        count()
        seen += 1
        if seen % 10 == 0:
            there.OnTell(padding=padding(seen // 10))

    with Listener(path) as listener:
        command = [sys.executable, __file__, path, str(messages), str(enable_at), "client"]
        with subprocess.Popen(command) as child:
            there = Server(flow.Flow, accept_from(listener, child), Flow(on_message))
            there.serve()
    if child.returncode:
        raise SystemExit(child.returncode)


def client(path: str, messages: int, enable_at: int) -> None:
    """Call from four threads while a fifth takes the events."""
    talker = Client(flow.Flow, connect(path))
    count = _EnableLater(enable_at)

    def receive() -> None:
        for _ in talker.events():
            continue

    def send(first: int) -> None:
        draw = random.Random(first)
        for serial in range(first, messages, THREADS):
            choice = draw.random()
            if choice < 0.3:
                ask(talker, serial)
            elif choice < 0.4:
                talker.Hush(padding=[])
            else:
                talker.Tell(padding=padding(serial))
            count()

    receiver = threading.Thread(target=receive)
    senders = [threading.Thread(target=send, args=(first,)) for first in range(THREADS)]
    for thread in (receiver, *senders):
        thread.start()
    for thread in senders:
        thread.join()
    ask(talker, 1)  # the events before its reply have come, too
    talker.close()
    receiver.join()


def ask(talker: Any, number: int) -> None:
    """A call, which fails as it should."""
    answer = -1
    try:
        answer = talker.Ask(number=number).number
    except DomainError as error:
        answer = error.value
    assert answer == number


if __name__ == "__main__":
    flows.install()
    run = client if sys.argv[4:] else server
    try:
        run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    except ClosedError as error:
        raise SystemExit(str(error)) from error
    if flows.stats() or not stretto.available():
        raise SystemExit(f"without arrows: {flows.stats()}")
