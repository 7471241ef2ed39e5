"""The arrows of FIDL calls in the real trace processor equal those of a model."""

from __future__ import annotations

import asyncio
import itertools
import random
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from fidl_support import flow as fidl_flow
from fidl_support.arrows import ARROWS, check
from fidl_support.flow import Flow, ask, flow, padding
from stretto import flows
from stretto_fidl.bindings import channel, load
from stretto_fidl.cli.ordinal_names import Symbolizer, method_names
from stretto_fidl.compiler import compile_sources
from stretto_fidl.transport import (
    AsyncClient,
    AsyncServer,
    CallTimeoutError,
    Client,
    Deferred,
    DomainError,
    Server,
    UnknownMethodError,
)
from tests.support.oracle import Oracle, missing
from tests.support.polling import wait_until
from tests.support.recorded import record as record_program
from tests.support.recorded_events import record
from tests.support.traced_greeter import flows_installed

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


class LateFlow(Flow):
    """A server that replies to `Later` in another thread, in random order."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__(self.see)
        self.draw = draw
        self.ticks = itertools.cycle(range(1, fidl_flow.LARGEST))
        self.server: Any = None
        self.late: SimpleQueue[tuple[int, Deferred] | None] = SimpleQueue()

    def see(self, _size: int) -> None:
        if self.draw.random() < 0.2:
            self.server.OnTell(padding=padding(next(self.ticks)))

    def Later(self, request: Any) -> Deferred:  # noqa: N802
        deferred = Deferred()
        self.late.put((request.number, deferred))
        return deferred

    def answer(self) -> None:
        """Reply to queued calls of `Later` until None is taken from the queue."""
        waiting: list[tuple[int, Deferred]] = []
        going = True
        while going or waiting:
            while going and (not waiting or not self.late.empty()):
                got = self.late.get()
                going = got is not None
                waiting += [] if got is None else [got]
            if waiting:
                number, deferred = waiting.pop(self.draw.randrange(len(waiting)))
                deferred.resolve(flow.FlowLaterResponse(number=number))


class Turns:
    """Counts the messages that several threads send until `enough` is set."""

    def __init__(self) -> None:
        self.taken = 0
        self.enough = False

    def more(self) -> bool:
        """Count the next message; return whether the caller should send it."""
        self.taken += 1
        return not self.enough

    def wait(self, turns: int) -> None:
        """Wait until `turns` further messages have been counted."""
        end = self.taken + turns
        wait_until(lambda: self.taken >= end, f"{turns} turns")


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_of_threads_have_the_expected_arrows(seed: int) -> None:
    draw = random.Random(seed)
    serials = itertools.cycle(range(1, fidl_flow.LARGEST))
    near, far = channel()
    turns = Turns()

    def call_at_random(client: Any) -> None:
        while turns.more():
            choice = draw.randrange(12)
            if choice < 3:
                ask(client, draw.randrange(1000))
            elif choice == 3:
                client.Hush(padding=[])
            elif choice < 6:
                assert client.Later(number=3).number == 3
            elif choice == 6:
                # The call may time out at any point; its reply arrives later.
                with suppress(CallTimeoutError):
                    client.call(
                        "Later", flow.FlowLaterRequest(number=4), timeout=draw.random() * 1e-3
                    )
            else:
                client.Tell(padding=padding(next(serials)))

    with flows_installed():
        handler = LateFlow(draw)
        handler.server = server = Server(flow.Flow, far, handler)
        others = [threading.Thread(target=run) for run in (server.serve, handler.answer)]
        with Client(flow.Flow, near) as client:
            others.append(threading.Thread(target=lambda: list(client.events())))
            callers = [threading.Thread(target=call_at_random, args=(client,)) for _ in range(3)]
            for thread in (*others, *callers):
                thread.start()
            turns.wait(90)
            with record() as recorded:  # the recording begins while messages are being sent
                turns.wait(250)
                turns.enough = True
                for thread in callers:
                    thread.join()
                handler.late.put(None)
                others[1].join()
                client.Ask(number=1)  # When the reply comes, all earlier messages have come.
                client.close()
                for thread in others:
                    thread.join()
        assert flows.stats() == {}
    kinds = Counter(point[:2] for point in check(recorded.trace, 250))
    assert kinds["send", "request"] > 50
    assert kinds["receive", "one-way"] > 50
    assert kinds["send", "event"] > 15


class AsyncFlow(Flow):
    """An asyncio server that delays some replies, and sends events before the delayed replies."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.draw = draw
        self.ticks = itertools.cycle(range(1, fidl_flow.LARGEST))
        self.server: Any = None

    async def Later(self, request: Any) -> Any:  # noqa: N802
        for _ in range(self.draw.randrange(5)):
            await asyncio.sleep(0)
            if self.draw.random() < 0.2:
                await self.server.OnTell(padding=padding(next(self.ticks)))
        return flow.FlowLaterResponse(number=request.number)


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_of_tasks_have_the_expected_arrows(seed: int) -> None:
    draw = random.Random(seed)
    serials = itertools.cycle(range(1, fidl_flow.LARGEST))
    turns = Turns()

    async def call_at_random(client: Any) -> None:
        while turns.more():
            choice = draw.randrange(10)
            if choice < 2:
                try:
                    await client.Ask(number=draw.randrange(1000))
                except DomainError:
                    continue
            elif choice < 4:
                await client.Later(number=3)
            elif choice == 4:
                # Cancel the call before it is sent, before its reply, or after its reply.
                call = asyncio.create_task(client.Later(number=4))
                for _ in range(draw.randrange(6)):
                    await asyncio.sleep(0)
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
            elif choice == 5:
                await client.Hush(padding=[])
            else:
                await client.Tell(padding=padding(next(serials)))

    async def taken(more: int) -> None:
        end = turns.taken + more
        while turns.taken < end:
            await asyncio.sleep(0)

    async def main() -> bytes:
        near, far = channel()
        handler = AsyncFlow(draw)
        handler.server = server = AsyncServer(flow.Flow, far, handler)
        serving = asyncio.create_task(server.serve())
        async with AsyncClient(flow.Flow, near) as client:
            events = asyncio.create_task(client.dispatch_events(_Ignoring()))
            callers = [asyncio.create_task(call_at_random(client)) for _ in range(5)]
            await taken(100)
            with record() as recorded:  # The recording begins while the tasks are sending messages.
                await taken(300)
                turns.enough = True
                await asyncio.gather(*callers)
                await client.Ask(number=1)
                client.close()
                await asyncio.gather(serving, events)
        return recorded.trace

    with flows_installed():
        trace = asyncio.run(main())
        assert flows.stats() == {}
    kinds = Counter(point[:2] for point in check(trace, 300))
    assert kinds["receive", "reply"] > 50
    assert kinds["receive", "event"] > 10


class _Ignoring:
    async def OnTell(self, _payload: Any) -> None:  # noqa: N802
        await asyncio.sleep(0)


def test_messages_of_two_processes_have_the_expected_arrows_if_tracing_starts_late(
    tmp_path: Path,
) -> None:
    run = record_program(
        tmp_path / "trace.pftrace",
        "--buffer=64mb",
        "--no-functions",
        "--",
        fidl_flow.__file__,
        str(tmp_path / "sock"),
        "3000",
        "800",
        PYTHONPATH=":".join(sys.path),
    )
    assert run.status == 0, run.stderr
    points = check(run.trace, 2000)
    there = set(points)
    sent = {point for point in there if point[:2] in (("send", "one-way"), ("send", "request"))}
    assert len(sent) > 1500
    # If a message was sent after both processes began to trace, the trace has its send and its
    # receive event.
    both = {("receive", *point[1:]) for point in sent} & there
    assert len(both) > 1400


def test_symbolize_names_messages_that_were_recorded_by_ordinal() -> None:
    """The server's definition lacks the client's methods, so the trace has only ordinals."""
    near, far = channel()
    strange = load(compile_sources({"strange.fidl": STRANGE}))
    with flows_installed():
        server = Server(strange.Strange, far, object())
        serving = threading.Thread(target=server.serve)
        serving.start()
        with record(enabled=["rpc.transport"]) as recorded:
            with Client(extended.Flow, near) as client:
                client.Loose(number=1)
                with pytest.raises(UnknownMethodError):
                    client.Ask(number=2)
            serving.join()
        assert flows.stats() == {}
    before = transport_messages(recorded.trace)
    kinds = ("one-way", "request", "reply")
    assert [row[:2] for row in before] == [
        (role, kind) for kind in kinds for role in ("send", "receive")
    ]
    strangers = [name for role, kind, name, *_ in before if (role == "send") == (kind == "reply")]
    assert all(name.startswith("ordinal 0x") for name in strangers)
    assert all(duration == 0 for *_, duration in before)
    symbolizer = Symbolizer(method_names([EXTENDED_IR]))
    named = symbolizer.symbolize(recorded.trace)
    after = transport_messages(named)
    assert [row[2] for row in after] == ["Loose", "Loose", "Ask", "Ask", "Ask", "Ask"]
    assert [row[3] for row in after] == [row[2] for row in after]
    assert [row[4] for row in after] == [row[4] for row in before]
    assert symbolizer.unknown == set()
    assert len(Oracle(named).query(ARROWS)) == 4


STRANGE = "library test.strange; open protocol Strange {};"
EXTENDED = """
library test.extended;
open protocol Flow {
    flexible Ask(struct { number uint32; }) -> (struct { number uint32; });
    flexible Loose(struct { number uint32; });
};
"""
EXTENDED_IR = compile_sources({"extended.fidl": EXTENDED})
extended = load(EXTENDED_IR)

TRANSPORT = """
select extract_arg(s.arg_set_id, 'debug.role'), extract_arg(s.arg_set_id, 'debug.kind'),
       s.name, extract_arg(s.arg_set_id, 'debug.method'),
       extract_arg(s.arg_set_id, 'debug.ordinal'), s.dur
from slice s where s.category = 'rpc.transport'
order by instr('one-way request reply', extract_arg(s.arg_set_id, 'debug.kind')), s.ts
"""


def transport_messages(trace: bytes) -> list[tuple[Any, ...]]:
    oracle = Oracle(trace)
    assert oracle.errors() == []
    return [tuple(row) for row in oracle.query(TRANSPORT)]
