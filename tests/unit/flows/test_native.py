"""Native code handles messages like the Python models of flow ids and of the tracer."""

from __future__ import annotations

import gc
import random
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import stretto
from stretto import flows
from stretto.base import rpc_hooks
from stretto.base.rpc_hooks import (
    CONTROL,
    EVENT,
    ONE_WAY,
    REPLY,
    REQUEST,
    RpcChannel,
    RpcMethod,
)
from stretto.flows.ids import MAX_COUNT, AnchoredIds, NumberedIds
from stretto.flows.mixing import combine
from stretto.flows.native import FlowIds, MessageHook, MessageTemplates
from stretto.flows.tracer import TRANSPORT_CATEGORY, FlowTracer, incoming
from tests.support.recorded_events import Event, record
from tests.support.traced_greeter import flows_installed

KEY = 0x1234_5678_9ABC_DEF0
KINDS = (REQUEST, ONE_WAY, EVENT, REPLY, CONTROL)


def random_steps(seed: int, length: int = 400) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yield random method calls (name, arguments) for an object that makes flow ids."""
    draw = random.Random(seed)
    for _ in range(length):
        chance = draw.random()
        outgoing = draw.random() < 0.5
        if chance < 0.02:
            yield "lost", (outgoing,)
        elif chance < 0.022:
            yield "disable", ()
        else:
            txid = draw.choice((0, 0, 1, 2, draw.randrange(1, 10), draw.getrandbits(32)))
            answer = draw.choice((0, 0, 0, 1, draw.randrange(100)))
            message = (outgoing, draw.choice(KINDS), txid)
            if draw.random() < 0.2:
                yield "skip", (*message, answer)
            else:
                yield "next", (*message, draw.getrandbits(60), answer)


@pytest.mark.parametrize("seed", range(60))
def test_native_ids_equal_those_of_the_model(seed: int) -> None:
    draw = random.Random(seed)
    known = [draw.choice((0, KEY))]
    is_server, synchronised = draw.random() < 0.5, draw.random() < 0.5
    numbered = seed % 3 == 0
    native = FlowIds(
        lambda: known[0], is_server=is_server, synchronised=synchronised, numbered=numbered
    )
    model = (
        NumberedIds(lambda: known[0])
        if numbered
        else AnchoredIds(lambda: known[0], is_server=is_server, synchronised=synchronised)
    )
    for at, (call, arguments) in enumerate(random_steps(seed)):
        if numbered and call == "next" and arguments[1] == CONTROL:
            continue  # Numbered channels have no id for control messages.
        found, expected = getattr(native, call)(*arguments), getattr(model, call)(*arguments)
        assert call != "next" or found == expected
        if at == 100:
            known[0] = KEY


def test_native_counter_of_one_way_messages_has_the_same_maximum_as_the_model() -> None:
    ids = FlowIds(lambda: KEY)
    model = AnchoredIds(lambda: KEY, is_server=False)
    assert ids.next(True, REQUEST, 5) == model.next(True, REQUEST, 5, 0)
    assert MAX_COUNT == 0xFFFFFFFF  # The tests in C count up to this limit.
    assert ids.next(True, ONE_WAY, 0) == model.next(True, ONE_WAY, 0, 0) != 0


def test_native_flow_ids_have_the_attributes_owner_and_used() -> None:
    owner = object()
    assert FlowIds(lambda: 0, owner).owner is owner
    assert not FlowIds(lambda: 0).used
    assert FlowIds(lambda: 0, synchronised=False).used


def test_exception_of_the_callback_for_the_channel_key_is_raised() -> None:
    def key() -> int:
        raise KeyError("x")

    ids = FlowIds(key)
    with pytest.raises(KeyError):
        ids.next(True, REQUEST, 5)
    for wrong in ((), (True, "x", 5), (True, 1, None)):
        with pytest.raises(TypeError):
            ids.next(*wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        FlowIds(lambda: "x").next(True, REQUEST, 5)  # type: ignore[arg-type, return-value]


TRANSPORT = stretto.Category(TRANSPORT_CATEGORY)
METHODS = [RpcMethod("Service", name, 7, "test.native") for name in ("Ask", "Tell")]
UNKNOWN = RpcMethod("Service", "", 9)


@contextmanager
def tracer(*, native: bool) -> Iterator[FlowTracer]:
    """Install flow tracing and yield its tracer, with message handling native or in Python."""
    with flows_installed():
        hooks = rpc_hooks.hooks
        assert isinstance(hooks, FlowTracer)
        if not native:
            hooks.sent, hooks.received = hooks._sent, hooks._received  # type: ignore[assignment]
        yield hooks


def exchange_messages(hooks: FlowTracer, seed: int, *, numbered: bool) -> None:
    """Exchange random messages, some of them inside of a handler."""
    draw = random.Random(seed)
    ends = [
        RpcChannel(None, is_server=side, key=KEY, numbered=numbered, adopted=seed % 2 == 0)
        for side in (False, True)
    ]
    for number in range(1, 121):
        kind = draw.choice((REQUEST, ONE_WAY, EVENT, REPLY))
        txid = number if numbered or kind in (REQUEST, REPLY) else 0
        sender, receiver = ends if kind in (REQUEST, ONE_WAY) else reversed(ends)
        method = draw.choice((*METHODS, UNKNOWN))
        facts = (method, kind, txid, *(draw.randrange(3) for _ in range(draw.randrange(4))))
        if draw.random() < 0.05:
            hooks.lost(receiver, outgoing=False)
        span = hooks.sent(sender, hooks.now(), *facts)
        seen = hooks.received(receiver, *facts)
        for each in (span, seen):
            if each is not None:
                with each:
                    if draw.random() < 0.3:
                        nested = (METHODS[0], ONE_WAY, number + 10_000 if numbered else 0, 1)
                        hooks.sent(sender, hooks.now(), *nested)
                        inner = hooks.received(receiver, *nested)
                        if inner is not None:
                            with inner:
                                pass


def shown(event: Event) -> tuple[Any, ...]:
    return (
        event.kind, event.name, event.category, event.args, event.track,
        event.flows, event.terminating_flows,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("numbered", [False, True])
def test_native_and_python_tracers_record_the_same_events(seed: int, *, numbered: bool) -> None:
    events, stats = [], []
    for native in (False, True):
        with tracer(native=native) as hooks, record() as recorded:
            exchange_messages(hooks, seed, numbered=numbered)
            stats.append(flows.stats())
        events.append([shown(event) for event in recorded.events])
    assert events[0] == events[1]
    assert stats[0] == stats[1]
    assert len(events[0]) > 200


def ready(hooks: FlowTracer) -> tuple[RpcChannel, RpcChannel]:
    """Return the ends of a channel that has transported each kind of message once."""
    ends = [RpcChannel(None, is_server=side, key=KEY) for side in (False, True)]
    for kind in (REQUEST, ONE_WAY, EVENT, REPLY):
        for end in ends:
            hooks.sent(end, hooks.now(), METHODS[0], kind, 1, 1)
            hooks.received(end, METHODS[0], kind, 1, 1)
    return ends[0], ends[1]


def fallback_hook(hooks: FlowTracer, *, outgoing: bool) -> tuple[list[Any], MessageHook]:
    """Return a native hook, and the list of all arguments that the hook passes to Python."""
    passed: list[Any] = []

    def otherwise(*args: Any) -> None:
        passed.append(args)

    return passed, MessageHook(hooks, otherwise, incoming, TRANSPORT, outgoing)


ODD: list[tuple[str, Callable[[RpcChannel], tuple[Any, ...]]]] = [
    ("a kind that isn't traced", lambda end: (end, METHODS[0], CONTROL, 0, 1)),
    ("no kind at all", lambda end: (end, METHODS[0], 77, 0, 1)),
    ("a method without a template", lambda end: (end, METHODS[1], ONE_WAY, 0, 1)),
    ("a channel that is new", lambda _: (RpcChannel(None, is_server=False), METHODS[0], 0, 5, 1)),
    ("no channel", lambda _: (None, METHODS[0], ONE_WAY, 0, 1)),
    ("no method", lambda end: (end, None, ONE_WAY, 0, 1)),
    ("a text as the transaction", lambda end: (end, METHODS[0], REQUEST, "5", 1)),
    ("too few arguments", lambda end: (end, METHODS[0], REQUEST, 5)),
    ("too many arguments", lambda end: (end, METHODS[0], REQUEST, 5, 1, 0, 0, b"", 0)),
]


@pytest.mark.parametrize(("what", "make"), ODD, ids=[what for what, _ in ODD])
def test_message_that_native_code_cannot_handle_is_passed_to_python(what: str, make: Any) -> None:
    del what
    with tracer(native=True) as hooks, record():
        METHODS[1].state = None
        client, _ = ready(hooks)
        passed, hook = fallback_hook(hooks, outgoing=False)
        arguments = make(client)
        assert hook(*arguments) is None
        assert passed == [arguments]


def test_message_without_special_cases_is_handled_natively() -> None:
    with tracer(native=True) as hooks, record() as recorded:
        client, server = ready(hooks)
        before = len(METHODS[0].state.sent)  # type: ignore[attr-defined]
        passed, sent = fallback_hook(hooks, outgoing=True)
        _, received = fallback_hook(hooks, outgoing=False)
        span = sent(client, hooks.now(), METHODS[0], REQUEST, 9, 1)
        seen = received(server, METHODS[0], REQUEST, 9, 1)
        with span, seen:
            assert flows.incoming() != 0
        assert sent(client, hooks.now(), METHODS[0], ONE_WAY, 0, 1) is None
        assert passed == []
        assert before == len(KINDS)
    assert recorded.kinds.endswith("BBEEBE")


@pytest.mark.parametrize("how", ["disabled", "lost", "another's", "in an event"])
def test_message_whose_flow_needs_special_handling_is_passed_to_python(how: str) -> None:
    with tracer(native=True) as hooks, record():
        client, _ = ready(hooks)
        passed, sent = fallback_hook(hooks, outgoing=True)
        message = (client, hooks.now(), METHODS[0], ONE_WAY, 0, 1)
        if how == "disabled":
            client.state.ids.disable()  # type: ignore[attr-defined]
        elif how == "lost":
            hooks.lost(client, outgoing=True)
        elif how == "another's":
            passed, sent = fallback_hook(FlowTracer(), outgoing=True)
        if how == "in an event":

            class Sends:
                def __repr__(self) -> str:
                    sent(*message)
                    return ""

            stretto.instant("x", argument=Sends())
        else:
            sent(*message)
        assert passed == [message]


@pytest.mark.parametrize("transport", [False, True])
def test_message_that_is_not_recorded_is_counted(transport: bool) -> None:
    enabled = [TRANSPORT_CATEGORY, "test.native"] if transport else ["test.native"]
    with tracer(native=True) as hooks, record(enabled=enabled, disabled=["*"]) as recorded:
        client, _ = ready(hooks)
        shown_before = hooks.sent(client, hooks.now(), METHODS[0], REQUEST, 5, 1)
        assert shown_before is not None
        flows.disable("test.native")
        passed, sent = fallback_hook(hooks, outgoing=True)
        for method in (UNKNOWN, METHODS[0]):
            message = (client, hooks.now(), method, ONE_WAY, 0, 1)
            assert sent(*message) is None
            assert passed.pop() == message if transport else not passed
        flows.enable("test.native")
        hooks.sent(client, hooks.now(), METHODS[0], ONE_WAY, 0, 1)
    # The native code doesn't count messages that it passes on to Python.
    counted = 1 if transport else 3
    last = [event for event in recorded.events if event.flows][-1]
    assert last.flows == [stretto.flow_id(combine(KEY, 1), 5 << 32 | counted)]


def test_exception_of_the_python_fallback_function_is_raised() -> None:
    def fail(*_: object) -> None:
        raise KeyError("x")

    hook = MessageHook(None, fail, incoming, TRANSPORT, True)
    with pytest.raises(KeyError):
        hook(1, 2, 3)
    with pytest.raises(TypeError):
        MessageHook(None, fail, "no variable", TRANSPORT, True)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        MessageHook(None, fail, incoming, "no category", True)  # type: ignore[arg-type]


def test_template_that_is_no_event_template_is_refused() -> None:
    templates = MessageTemplates(None)
    template = stretto.Category("test.native").template("x")
    templates.put(True, REQUEST, template)
    with pytest.raises(TypeError):
        templates.put(True, REQUEST, "x")  # type: ignore[arg-type]
    for kind in (-1, 5):
        with pytest.raises(ValueError, match="no such kind"):
            templates.put(True, kind, template)


def test_messages_leak_no_memory() -> None:
    with tracer(native=True) as hooks, record():
        client, server = ready(hooks)

        def call(txid: int) -> None:
            span = hooks.sent(client, hooks.now(), METHODS[0], REQUEST, txid, 1, 2)
            seen = hooks.received(server, METHODS[0], REQUEST, txid, 1, 2)
            assert span is not None
            assert seen is not None
            with span, seen:
                hooks.sent(server, hooks.now(), METHODS[0], REPLY, txid, 1)
                hooks.sent(server, hooks.now(), METHODS[0], EVENT, 0, 1)

        for txid in range(2, 1000):
            call(txid)
        before = sys.getallocatedblocks()
        for txid in range(1000, 4000):
            call(txid)
        assert sys.getallocatedblocks() - before < 1000


def test_deleted_tracer_is_freed() -> None:
    with record():
        gone = FlowTracer()
        method = RpcMethod("Service", "Ask", 7, "test.native")
        channel = RpcChannel(None, is_server=False, key=KEY)
        gone.sent(channel, 1, method, ONE_WAY, 0, 1)
        there = weakref.ref(gone)
        del gone, method, channel
        gc.collect()
        assert there() is None
