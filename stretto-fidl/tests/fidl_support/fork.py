"""A FIDL server and its client, one of which forks while it has the channel open.

    python fidl_fork.py SOCKET MODE

This program is the server, which starts the client. The length of a one-way message or event
encodes its serial number; the serial numbers of a forked child begin with 100. The modes:

    client    the client's child sends messages at once
    later     the client's child sends messages after its parent's next call
    idle      the client's child sends nothing
    server    the server's child sends an event
    worker    the server passes the connection to a child before the first message
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from fidl_support.child import accept_from
from fidl_support.flow import Flow, ask, flow, padding
from stretto import flows
from stretto_fidl.bindings import ChannelEnd
from stretto_fidl.transport import Client, Listener, Server, connect

FORK_AT = 50
CHILD = 100
WITHOUT_ARROWS = {
    # The numbers of messages without arrows, by mode. After a fork, messages of the parent have no
    # arrows until the next call of the parent. If the child has used the channel, messages have no
    # arrows at all. A call counts as three messages.
    "client": {"forked": 14},
    "later": {"not synchronised": 6, "forked": 6},
    "idle": {"not synchronised": 6},
    "server": {"forked": 13},
    "worker": {},
}


class Child:
    """A forked child. It runs a function when its parent calls `go`.

    Args:
        run: The function to call in the child.
        expected: The `flows.stats()` of the child afterwards.
    """

    def __init__(self, run: Callable[[], object], expected: dict[str, int]) -> None:
        self._go_read, self._go_write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            self._run_in_child(run, expected)

    def _run_in_child(self, run: Callable[[], object], expected: dict[str, int]) -> None:
        status = 1
        try:
            os.read(self._go_read, 1)
            run()
            status = 0 if flows.stats() == expected else 2
            if status:
                print(f"the child counted {flows.stats()}", file=sys.stderr)
        finally:
            os._exit(status)

    def go(self) -> None:
        """Make the child run its function, and wait until it exits."""
        os.write(self._go_write, b"x")
        if os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1]):
            raise SystemExit("the child failed")
        os.close(self._go_write)
        os.close(self._go_read)


def client(path: str, mode: str) -> None:
    """Send one-way messages and calls before and after the fork."""
    with Client(flow.Flow, connect(path)) as caller:

        def tell(first: int, count: int) -> None:
            for serial in range(first, first + count):
                caller.Tell(padding=padding(serial))

        def event() -> None:
            assert caller.next_event(60) is not None

        ask(caller, 1)
        tell(1, 3)
        event()
        child = None
        if mode in ("client", "later"):
            child = Child(lambda: tell(CHILD, 3), {"forked": 3})
        elif mode == "idle":
            Child(lambda: None, {}).go()
        if child is not None and mode == "client":
            child.go()
        tell(FORK_AT, 1)  # the server forks when it receives this message
        if mode == "server":
            event()
        event()
        tell(11, 3)
        event()
        ask(caller, 2)
        tell(21, 3)
        event()
        if child is not None and mode == "later":
            child.go()
            tell(31, 3)
            event()
        ask(caller, 3)


def server(path: str, mode: str) -> None:
    """Serve the client, and send an event after each third message."""
    with Listener(path) as listener:
        command = [sys.executable, __file__, path, mode, "client"]
        with subprocess.Popen(command) as started:
            end = accept_from(listener, started)
            if mode == "worker":
                Child(lambda: serve(end, mode), {}).go()
                end.close()
            else:
                serve(end, mode)
        if started.returncode:
            raise SystemExit(started.returncode)


def serve(end: ChannelEnd, mode: str) -> None:
    there: Any = None

    def event(serial: int) -> None:
        there.OnTell(padding=padding(serial))

    def on_message(size: int) -> None:
        if size == FORK_AT and mode == "server":
            Child(lambda: event(CHILD), {"forked": 1}).go()
        if size == FORK_AT or (size % 10 == 3 and size < CHILD):
            event(size)

    there = Server(flow.Flow, end, Flow(on_message))
    there.serve()


if __name__ == "__main__":
    flows.install()
    mode = sys.argv[2]
    role = "client" if sys.argv[3:] else "server"
    {"client": client, "server": server}[role](sys.argv[1], mode)
    forks = role == ("server" if mode == "server" else "client")
    if flows.stats() != (WITHOUT_ARROWS[mode] if forks else {}):
        raise SystemExit(f"without arrows: {flows.stats()}")
