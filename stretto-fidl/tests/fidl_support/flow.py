"""A traced FIDL protocol, and a program of two processes that use it.

The length of a one-way message or event encodes its serial number, so a test can find a message at
both ends by its size. As a program, this module is a server, which starts a client of four threads:

    python fidl_flow.py SOCKET MESSAGES ENABLE_AT

Both processes begin to trace independently, after their ENABLE_AT-th message.
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
"""The largest serial number: each unit takes eight bytes of the message."""

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
    """Handles the test protocol Flow, and replies to every seventh `Ask` with an error."""

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
    """Return a payload whose length is the serial number of the message."""
    return [0] * serial


class _EnableLater:
    """Enables the tracing category after a given number of messages."""

    def __init__(self, at: int) -> None:
        self._left = at
        flows.disable(CATEGORY)

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            flows.enable(CATEGORY)


def server(path: str, messages: int, enable_at: int) -> None:
    """Serve a client, and send an event after every tenth message."""
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
    """Send messages from four threads while a fifth thread takes the events."""
    caller = Client(flow.Flow, connect(path))
    count = _EnableLater(enable_at)

    def receive() -> None:
        for _ in caller.events():
            continue

    def send(first: int) -> None:
        draw = random.Random(first)
        for serial in range(first, messages, THREADS):
            choice = draw.random()
            if choice < 0.3:
                ask(caller, serial)
            elif choice < 0.4:
                caller.Hush(padding=[])
            else:
                caller.Tell(padding=padding(serial))
            count()

    receiver = threading.Thread(target=receive)
    senders = [threading.Thread(target=send, args=(first,)) for first in range(THREADS)]
    for thread in (receiver, *senders):
        thread.start()
    for thread in senders:
        thread.join()
    ask(caller, 1)  # When the reply comes, all earlier events have come.
    caller.close()
    receiver.join()


def ask(caller: Any, number: int) -> None:
    """Call `Ask`, and expect an error for every seventh number."""
    answer = -1
    try:
        answer = caller.Ask(number=number).number
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
