"""A FIDL server and its client, one of which forks with the channel in its hands.

    python fidl_fork.py SOCKET client|server|worker

is the server, which starts the client. One-way messages and events are as long as their serial
number says; those of a forked child begin with 100. "worker": the server hands each connection to
a child before anything was said, and that is nothing special.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from stretto import flows
from stretto.fidl.bindings import ChannelEnd
from stretto.fidl.transport import Client, Listener, Server, connect
from tests.support.fidl_flow import Flow, ask, flow, padding

FORK_AT = 50
CHILD = 100


def in_child(run: Callable[[], object], expected: dict[str, int]) -> None:
    """Fork, and wait for the child's end; it must have counted what was expected."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run()
            status = 0 if flows.stats() == expected else 2
            if status:
                print(f"the child counted {flows.stats()}", file=sys.stderr)
        finally:
            os._exit(status)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise SystemExit("the child failed")


def client(path: str, who_forks: str) -> None:
    """Talk before and after the fork, with and without calls."""
    with Client(flow.Flow, connect(path)) as talker:

        def tell(first: int, count: int) -> None:
            for serial in range(first, first + count):
                talker.Tell(padding=padding(serial))

        def event() -> None:
            assert talker.next_event(60) is not None

        ask(talker, 1)
        tell(1, 3)
        event()
        if who_forks == "client":
            in_child(lambda: tell(CHILD, 3), {"forked": 3})
        tell(FORK_AT, 1)  # the server forks here
        if who_forks == "server":
            event()
        event()
        tell(11, 3)
        event()
        ask(talker, 2)
        tell(21, 3)
        event()
        ask(talker, 3)


def server(path: str, who_forks: str) -> None:
    """Answer, and send an event behind each third message."""
    with Listener(path) as listener:
        command = [sys.executable, __file__, path, who_forks, "client"]
        with subprocess.Popen(command) as started:
            end = listener.accept()
            if who_forks == "worker":
                in_child(lambda: serve(end, who_forks), {})
                end.close()
            else:
                serve(end, who_forks)
        if started.returncode:
            raise SystemExit(started.returncode)


def serve(end: ChannelEnd, who_forks: str) -> None:
    there: Any = None

    def event(serial: int) -> None:
        there.OnTell(padding=padding(serial))

    def on_message(size: int) -> None:
        if size == FORK_AT and who_forks == "server":
            in_child(lambda: event(CHILD), {"forked": 1})
        if size == FORK_AT or (size % 10 == 3 and size < CHILD):
            event(size)

    there = Server(flow.Flow, end, Flow(on_message))
    there.serve()


if __name__ == "__main__":
    flows.install()
    role = "client" if sys.argv[3:] else "server"
    {"client": client, "server": server}[role](sys.argv[1], sys.argv[2])
    silent = {"client": 6, "server": 5}[role] if role == sys.argv[2] else 0
    if flows.stats() != ({"not synchronised": silent} if silent else {}):
        raise SystemExit(f"without arrows: {flows.stats()}")
