"""Two processes that exchange very many FIDL messages, each with its serial number in the body.

    python fidl_many.py SOCKET MESSAGES ENABLE_AT LOSE_EVERY

The program is a server, which starts a client of four sending threads. Each process begins to trace
after its ENABLE_AT-th message.

The server has two counts: of the messages that it has written, and of those that it has read. After
each traced message whose serial number is a multiple of LOSE_EVERY, the test makes the server
forget one of the counts, by turns. With LOSE_EVERY 0, the server forgets neither.
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
from stretto.base import rpc_hooks
from stretto_fidl.bindings import load
from stretto_fidl.compiler import compile_sources
from stretto_fidl.transport import Client, Listener, Server, connect

CATEGORY = "test.many"
THREADS = 4
FIRST_EVENT = 1 << 24

SOURCE = f"""
library test.many;

@trace("{CATEGORY}")
closed protocol Many {{
    strict Ask(struct {{ serial uint32; }}) -> (struct {{ serial uint32; }});
    strict Tell(struct {{ serial uint32; }});
    strict -> OnTell(struct {{ serial uint32; }});
}};
"""

many: Any = load(compile_sources({"many.fidl": SOURCE}))


class _EnableLater:
    """Enables the tracing category after a given number of messages."""

    def __init__(self, at: int) -> None:
        self._left = at
        flows.disable(CATEGORY)

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            flows.enable(CATEGORY)

    @property
    def was_on(self) -> bool:
        """Whether the category was enabled before the last counted message."""
        return self._left < 0


def loses(serial: int, lose_every: int) -> str:
    """Return the count that the server loses after a message: "in", "out" or "" for none."""
    if not lose_every or serial % lose_every:
        return ""
    return "out" if serial // lose_every % 2 else "in"


class Many:
    """Handles the test protocol Many, and sends an event after every tenth message."""

    def __init__(self, enable_at: int, lose_every: int) -> None:
        self.server: Any = None
        self._count = _EnableLater(enable_at)
        self._lose_every = lose_every

    def Ask(self, request: Any) -> Any:  # noqa: N802
        self._see(request.serial)
        return many.ManyAskResponse(serial=request.serial)

    def Tell(self, request: Any) -> None:  # noqa: N802
        self._see(request.serial)

    def _see(self, serial: int) -> None:
        self._count()
        if serial % 10 == 0:
            self.server.OnTell(serial=FIRST_EVENT + serial)
        hooks = rpc_hooks.hooks
        what = loses(serial, self._lose_every) if self._count.was_on else ""
        if what and hooks is not None:
            hooks.lost(self.server._endpoint.channel, what == "out")


def server(path: str, messages: int, enable_at: int, lose_every: int) -> None:
    """Start a client process, and serve it."""
    with Listener(path) as listener:
        arguments = [path, str(messages), str(enable_at), str(lose_every), "client"]
        with subprocess.Popen([sys.executable, __file__, *arguments]) as child:
            handler = Many(enable_at, lose_every)
            handler.server = there = Server(many.Many, accept_from(listener, child), handler)
            there.serve()
    if child.returncode:
        raise SystemExit(child.returncode)
    if set(flows.stats()) - {"not synchronised"} or bool(flows.stats()) != bool(lose_every):
        raise SystemExit(f"without arrows: {flows.stats()}")


def client(path: str, messages: int, enable_at: int, _lose_every: int) -> None:
    """Send messages from four threads while a fifth thread takes the events."""
    caller = Client(many.Many, connect(path))
    count = _EnableLater(enable_at)

    def receive() -> None:
        for _ in caller.events():
            continue

    def send(first: int) -> None:
        draw = random.Random(first)
        for serial in range(first, messages, THREADS):
            if draw.random() < 0.2:
                assert caller.Ask(serial=serial).serial == serial
            else:
                caller.Tell(serial=serial)
            count()

    receiver = threading.Thread(target=receive)
    senders = [threading.Thread(target=send, args=(first,)) for first in range(THREADS)]
    for thread in (receiver, *senders):
        thread.start()
    for thread in senders:
        thread.join()
    caller.Ask(serial=messages)  # When the reply comes, all earlier events have come.
    caller.close()
    receiver.join()
    if flows.stats():
        raise SystemExit(f"without arrows: {flows.stats()}")


if __name__ == "__main__":
    # Threads switch often, so that a test fails if messages are counted outside of the lock.
    sys.setswitchinterval(1e-4)
    flows.install(bodies=[CATEGORY])
    run = client if sys.argv[5:] else server
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    if not stretto.available():
        raise SystemExit("nothing is traced here")
