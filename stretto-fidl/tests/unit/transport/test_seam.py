"""The transport reports each message to the hooks. Without hooks it loads no tracing module."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from fidl_support.async_talk import AsyncTalker
from fidl_support.async_talk import conversation as async_conversation
from fidl_support.talk import ZX, Talker, load_talk, serving, talk, talk_source
from stretto.base import rpc_hooks
from stretto.base.rpc_hooks import CONTROL, EVENT, ONE_WAY, REPLY, REQUEST
from stretto_fidl.bindings import channel, load
from stretto_fidl.bindings.generator import generate
from stretto_fidl.codec import TransactionHeader
from stretto_fidl.compiler import compile_sources
from stretto_fidl.transport import (
    AsyncClient,
    AsyncServer,
    Client,
    ClosedError,
    DomainError,
    Server,
)
from stretto_fidl.transport.described import category
from tests.support.generated import load_text
from tests.support.sources import ROOT


class MessageSpan:
    """A message span of a test; it fails unless the transport enters and leaves it exactly once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._state = "span"
        recorder.open.add(self)

    def __enter__(self) -> None:
        assert self._state == "span"
        self._state = "entered"

    def __exit__(self, kind, error, traceback) -> None:
        assert self._state == "entered"
        self._state = "left"
        self._recorder.open.remove(self)
        if kind is not None:
            self._recorder.reported.append(("error", kind))


class Recorder:
    """Hooks that record the reported messages."""

    def __init__(self) -> None:
        self.reported: list[tuple[Any, ...]] = []
        self.open: set[MessageSpan] = set()
        self.now = itertools.count(1).__next__

    def sent(self, channel, stamp, method, kind, txid, size=0, handles=0, answer=0, data=b""):
        assert stamp
        span = self._told("sent", channel, kind, txid, method)
        if kind == REQUEST:
            return span
        with span:
            return None

    def received(self, channel, method, kind, txid, size=0, handles=0, answer=0, data=b""):
        return self._told("received", channel, kind, txid, method)

    def opened(self, channel) -> None:
        assert channel.is_server

    def lost(self, channel, outgoing) -> None:
        raise AssertionError

    def _told(self, what, channel, kind, txid, method):
        side = "server" if channel.is_server else "client"
        self.reported.append((side, what, kind, txid, method.name))
        return MessageSpan(self)

    def of(self, side: str, what: str) -> list[tuple[Any, ...]]:
        """Return kind, transaction id and method of the reported messages."""
        return [each[2:] for each in self.reported if each[:2] == (side, what)]


@pytest.fixture
def hooks() -> Iterator[Recorder]:
    recorder = Recorder()
    rpc_hooks.set_hooks(recorder, None)
    try:
        yield recorder
    finally:
        rpc_hooks.set_hooks(None, None)


EXPECTED = [
    (REQUEST, "Echo"),
    (ONE_WAY, "Fire"),
    (REQUEST, "Divide"),
    (REQUEST, "Crash"),
]


def check(hooks: Recorder) -> None:
    assert hooks.of("client", "sent") == hooks.of("server", "received")
    assert hooks.of("server", "sent") == hooks.of("client", "received")
    assert [(kind, name) for kind, _, name in hooks.of("client", "sent")] == EXPECTED
    replies = [(kind, name) for kind, _, name in hooks.of("server", "sent")]
    assert replies == [(REPLY, "Echo"), (EVENT, "OnTick"), (REPLY, "Divide"), (CONTROL, "epitaph")]
    errors = [each[1] for each in hooks.reported if each[0] == "error"]
    assert {DomainError, ZeroDivisionError, ClosedError} >= set(errors) >= {ZeroDivisionError}
    assert hooks.open == set()


def test_hooks_get_each_message_at_both_ends(hooks: Recorder) -> None:
    near, far = channel()
    with serving(far) as there, Client(talk.Talk, near) as client:
        client.Echo(number=1)
        client.Fire(number=2)
        there.server.OnTick(number=3)
        with pytest.raises(DomainError):
            client.Divide(a=1, b=0)
        assert client.next_event().payload.number == 3
        with pytest.raises(ClosedError):
            client.Crash()
        there.join()
    check(hooks)


def test_hooks_get_each_message_in_an_asyncio_loop(hooks: Recorder) -> None:
    async def main() -> None:
        async with async_conversation() as (client, server, _):
            await client.Echo(number=1)
            await client.Fire(number=2)
            await server.OnTick(number=3)
            with pytest.raises(DomainError):
                await client.Divide(a=1, b=0)
            assert (await client.next_event()).payload.number == 3
            with pytest.raises(ClosedError):
                await client.Crash()

    asyncio.run(main())
    check(hooks)


def test_spans_of_a_cancelled_call_and_its_handler_are_ended(hooks: Recorder) -> None:
    async def main() -> None:
        handler = AsyncTalker()
        async with async_conversation(handler) as (client, _, _):
            call = asyncio.create_task(client.Later(number=1))
            while not handler.running:
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            handler.gate.set()
            await client.Echo(number=2)
            gone = asyncio.create_task(client.Later(number=3))
            await asyncio.sleep(0)
            await client.Echo(number=4)
            handler.gate.clear()
            client.close()
            await asyncio.gather(gone, return_exceptions=True)

    asyncio.run(main())
    assert hooks.open == set()
    assert [name for _, _, name in hooks.of("client", "received")][:2] == ["Later", "Echo"]


def test_spans_of_dropped_messages_are_ended(hooks: Recorder) -> None:
    near, far = channel()
    with (
        socket.socket(fileno=far.detach()) as peer,
        Client(talk.Talk, near, event_limit=1) as client,
    ):
        tick = talk.Talk.BY_NAME["OnTick"].ordinal
        for _ in range(3):
            peer.send(TransactionHeader(0, tick).encode() + bytes(8))
        peer.send(TransactionHeader(0, 99, True).encode())
        peer.shutdown(socket.SHUT_WR)
        assert [event.name for event in client.events()][-1:] == [""]
    assert hooks.open == set()
    assert len(hooks.of("client", "received")) == 4


def test_only_channel_ends_received_in_a_message_are_marked_as_adopted(hooks: Recorder) -> None:
    del hooks
    near, far = channel()
    with serving(far), Client(talk.Talk, near) as fresh:
        assert not fresh._endpoint.channel.adopted
        one, other = channel()
        handed = fresh.Pass(what=one).what
        with other, Client(talk.Talk, handed) as client:
            assert client._endpoint.channel.adopted


PARTS = ("co_code", "co_consts", "co_names", "co_varnames", "co_flags", "co_exceptiontable")
"""The attributes of a code object that determine how it runs."""


def names_of(how: str, *, traced: str) -> Any:
    """Return the classes of Talk, loaded or generated."""
    source = talk_source(traced=traced)
    ir = compile_sources({"talk.fidl": source}, dependencies={"zx.fidl": ZX})
    if how == "loaded":
        return load(ir)
    return load_text(generate(ir, trace=how)["test_talk.py"], f"test_talk_{how}_{bool(traced)}")


def stubs_of(base: type, names: Any) -> dict[str, Any]:
    """Return the method stubs of a client or server class, by name."""
    others = (None, None) if "Server" in base.__name__ else (None,)
    cls = base.__new__(base, names.Talk, *others).__class__
    return {name: stub for name, stub in vars(cls).items() if hasattr(stub, "__code__")}


def same_code(one: dict[str, Any], other: dict[str, Any]) -> bool:
    assert len(one) >= 2
    return one.keys() == other.keys() and all(
        getattr(one[name].__code__, part) == getattr(other[name].__code__, part)
        for name in one
        for part in PARTS
    )


@pytest.mark.parametrize("base", [Client, AsyncClient, Server, AsyncServer])
@pytest.mark.parametrize("how", ["loaded", "keep", "strip"])
def test_method_stubs_are_traced_only_during_a_recording(
    how: str, base: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    category = f"test.swapped.{how}.{base.__name__}"
    switch = rpc_hooks.switch(category)
    unannotated = stubs_of(base, names_of(how, traced=""))
    names = names_of(how, traced=category)
    off = stubs_of(base, names)
    assert same_code(off, unannotated)
    switch.set(True)
    on = stubs_of(base, names)
    switch.set(False)
    swapped = {name for name in on if on[name] is not off[name]}
    calls = {"Echo", "Divide", "Later", "Crash", "Pass"} & on.keys() if how != "strip" else set()
    assert swapped == calls
    assert all("_traced_call" in on[name].__code__.co_names for name in swapped)
    assert not any("_traced_call" in stub.__code__.co_names for stub in off.values())
    assert stubs_of(base, names) == off


def test_methods_without_a_trace_category_register_no_listener(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(type(rpc_hooks.NEVER), "listen", None)
    names = load_talk()
    assert hasattr(Client.__new__(Client, names.Talk, None), "Echo")


def test_traced_call_has_the_results_of_a_plain_call() -> None:
    names = load_talk(traced="test.working")
    near, far = channel()
    with serving(far, Talker(names)), Client(names.Talk, near) as client:
        rpc_hooks.switch("test.working").set(True)
        try:
            assert client.Echo(number=1).number == 1
            with pytest.raises(DomainError):
                client.Divide(a=1, b=0)
        finally:
            rpc_hooks.switch("test.working").set(False)


def test_untraced_calls_load_no_tracing_modules() -> None:
    program = """
import sys
from fidl_support.talk import conversation
from tests.support.greeter import Greeter
with conversation() as (client, _):
    assert client.Echo(number=1).number == 1
tracers = ("stretto.flows", "stretto.backends", "stretto.service", "stretto.profilers")
print([name for name in sys.modules if name.startswith(tracers)])
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


CATEGORIES = """
library test.categories;

@trace("base")
closed protocol Base {
    strict Inherited();
    @trace("off")
    strict Silent();
    @trace("")
    strict Empty();
    @trace(" , later")
    strict Blank();
};

@trace("outer")
closed protocol Outer {
    compose Base;
    @trace("own")
    @trace("second")
    strict Own();
    strict Plain();
};

closed protocol Bare {
    compose Base;
    strict Untold();
};
"""


def test_methods_have_the_category_of_their_trace_attribute() -> None:
    names = load(compile_sources({"categories.fidl": CATEGORIES}))
    found = {
        (protocol.__name__, method.name): category(protocol, method)
        for protocol in (names.Base, names.Outer, names.Bare)
        for method in protocol.METHODS
    }
    for protocol in ("Base", "Outer", "Bare"):
        assert {found.pop((protocol, name)) for name in ("Empty", "Blank")} == {""}
    assert found == {
        ("Base", "Inherited"): "base",
        ("Base", "Silent"): "",
        ("Outer", "Inherited"): "base",
        ("Outer", "Silent"): "",
        ("Outer", "Own"): "own",
        ("Outer", "Plain"): "outer",
        ("Bare", "Inherited"): "base",
        ("Bare", "Silent"): "",
        ("Bare", "Untold"): "",
    }
