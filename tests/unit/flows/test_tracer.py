"""FlowTracer: these tests call its hooks directly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextvars import copy_context

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
from stretto.flows.ids import TO_SERVER
from stretto.flows.mixing import combine, stream
from stretto.flows.tracer import TRANSPORT_CATEGORY, FlowTracer
from tests.support.recorded_events import BEGIN, INSTANT, Event, record
from tests.support.traced_greeter import flows_installed

PING = RpcMethod("Pinger", "Ping", 0x1234, "test.tracer")
PLAIN = RpcMethod("Pinger", "Plain", 0x99)


@pytest.fixture
def hooks() -> Iterator[FlowTracer]:
    with flows_installed():
        assert isinstance(rpc_hooks.hooks, FlowTracer)
        yield rpc_hooks.hooks


def ends(key: int = 7, *, adopted: bool = False) -> tuple[RpcChannel, RpcChannel]:
    return (
        RpcChannel(None, is_server=False, key=key, adopted=adopted),
        RpcChannel(None, is_server=True, key=key, adopted=adopted),
    )


def transport(
    hooks: FlowTracer,
    sender: RpcChannel,
    receiver: RpcChannel,
    kind: int,
    txid: int = 0,
    method: RpcMethod = PING,
) -> None:
    """Send and receive one message."""
    for span in (
        hooks.sent(sender, hooks.now(), method, kind, txid, 16),
        hooks.received(receiver, method, kind, txid, 16),
    ):
        if span is not None:
            with span:
                pass


def flow_pairs(events: list[Event]) -> list[tuple[int, int]]:
    """Return the flow ids of each message as (sent, received); 0 means that there is no flow."""
    ids = [(e.flows + e.terminating_flows or [0])[0] for e in events if e.kind in (BEGIN, INSTANT)]
    return list(zip(ids[::2], ids[1::2], strict=True))


class TestFlowSynchronisation:
    def test_messages_of_all_kinds_have_different_flows(self, hooks: FlowTracer) -> None:
        client, server = ends()
        with record() as recorded:
            transport(hooks, client, server, ONE_WAY)
            transport(hooks, client, server, REQUEST, 5)
            transport(hooks, server, client, EVENT)
            transport(hooks, server, client, REPLY, 5)
            transport(hooks, server, client, EVENT)
        pairs = flow_pairs(recorded.events)
        assert all(out == into != 0 for out, into in pairs)
        assert pairs[1] == pairs[3]
        assert len(set(pairs)) == 4
        assert flows.stats() == {}

    def test_messages_before_the_session_are_counted(self, hooks: FlowTracer) -> None:
        client, server = ends()
        transport(hooks, client, server, ONE_WAY)
        with record() as recorded:
            transport(hooks, client, server, ONE_WAY)
        ((out, into),) = flow_pairs(recorded.events)
        second = stream(combine(7, TO_SERVER), 2)
        assert out == into == second

    @pytest.mark.parametrize("how", ["older than the hooks", "adopted", "hooks were away"])
    def test_one_way_messages_have_no_flow_before_a_transaction(self, how: str) -> None:
        if how == "older than the hooks":
            client, server = ends()
        with flows_installed():
            if how != "older than the hooks":
                client, server = ends(adopted=how == "adopted")
            if how == "hooks were away":
                flows.uninstall()
                flows.install()
            hooks = rpc_hooks.hooks
            assert isinstance(hooks, FlowTracer)
            with record() as recorded:
                transport(hooks, client, server, ONE_WAY)
                transport(hooks, client, server, REQUEST, 9)
                transport(hooks, client, server, ONE_WAY)
            (suppressed, *rest) = flow_pairs(recorded.events)
            assert suppressed == (0, 0)
            assert all(out == into != 0 for out, into in rest)
            assert flows.stats() == {"not synchronised": 2}

    def test_lost_messages_stop_flows_in_their_direction_until_the_next_request(
        self, hooks: FlowTracer
    ) -> None:
        client, server = ends()
        with record() as recorded:
            transport(hooks, client, server, ONE_WAY)
            hooks.lost(server, outgoing=False)
            transport(hooks, client, server, ONE_WAY)
            transport(hooks, server, client, EVENT)
            transport(hooks, client, server, REQUEST, 3)
        first, lost, event, healed = flow_pairs(recorded.events)
        assert first[0] == first[1] != 0
        assert lost[0] != 0
        assert lost[1] == 0
        assert event[0] == event[1] != 0
        assert healed[0] == healed[1] != 0
        assert flows.stats() == {"not synchronised": 1}

    def test_fork_suppresses_one_way_flows_until_a_transaction(self, hooks: FlowTracer) -> None:
        client, server = ends()
        fresh = ends(8)
        with record() as recorded:
            transport(hooks, client, server, ONE_WAY)
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            transport(hooks, client, server, ONE_WAY)
            transport(hooks, server, client, EVENT)
            transport(hooks, client, server, REQUEST, 3)
            transport(hooks, client, server, ONE_WAY)
            transport(hooks, *fresh, ONE_WAY)
        before, one_way, event, *healed = flow_pairs(recorded.events)
        assert before[0] == before[1] != 0
        assert one_way == event == (0, 0)
        assert all(out == into != 0 for out, into in healed)
        assert flows.stats() == {"not synchronised": 4}

    def test_tracer_keeps_no_reference_to_channels(self, hooks: FlowTracer) -> None:
        client, server = ends()
        transport(hooks, client, server, ONE_WAY)
        assert len(hooks._states) == 2
        del client, server
        assert len(hooks._states) == 0


class TestRecordedEvents:
    def test_control_messages_are_counted_and_not_recorded(self, hooks: FlowTracer) -> None:
        client, server = ends()
        with record() as recorded:
            transport(hooks, server, client, CONTROL)
            transport(hooks, server, client, EVENT)
        assert [event.args.get("kind") for event in recorded.events][::2] == ["event", "event"]

    def test_slice_of_a_call_includes_the_wait_for_the_reply(self, hooks: FlowTracer) -> None:
        client, _ = ends()
        with record() as recorded:
            stamp = hooks.now()
            call = hooks.sent(client, stamp, PING, REQUEST, 4, 0, 2)
            assert call is not None
            with call:
                stretto.instant("waiting")
        assert recorded.kinds == "BIE"
        assert recorded.events[0].timestamp == stamp
        assert recorded.events[0].args["handles"] == 2

    def test_exception_ends_the_slice_of_a_message(self, hooks: FlowTracer) -> None:
        _, server = ends()
        with record() as recorded:
            seen = hooks.received(server, PING, REQUEST, 4)
            assert seen is not None
            with pytest.raises(ValueError, match="x"), seen:
                raise ValueError("x")
        assert recorded.kinds == "BE"

    def test_end_of_a_slice_begun_in_an_earlier_session_is_not_recorded(
        self, hooks: FlowTracer
    ) -> None:
        client, _ = ends()
        with record():
            call = hooks.sent(client, hooks.now(), PING, REQUEST, 4)
            assert call is not None
            call.__enter__()
        with record() as recorded:
            call.__exit__(None, None, None)
        assert recorded.events == []

    @pytest.mark.parametrize("both", [False, True])
    def test_transport_category_records_every_message(
        self, hooks: FlowTracer, *, both: bool
    ) -> None:
        client, server = ends()
        unknown = RpcMethod("", "", 0x77)
        enabled = [TRANSPORT_CATEGORY, "test.tracer"] if both else [TRANSPORT_CATEGORY]
        with record(enabled=enabled, disabled=["*"]) as recorded:
            transport(hooks, client, server, ONE_WAY, method=unknown)
            transport(hooks, client, server, REQUEST, 8, method=PLAIN)
            transport(hooks, client, server, ONE_WAY, method=PING)
        pairs = flow_pairs(recorded.events)
        assert all(out == into != 0 for out, into in pairs)
        assert len(set(pairs)) == 3
        assert recorded.events[0].name == "ordinal 0x77"
        assert recorded.events[0].args["ordinal"] == 0x77
        assert recorded.kinds == ("IIIIBEBE" if both else "IIIIII")

    def test_transport_category_is_disabled_by_default(self, hooks: FlowTracer) -> None:
        client, server = ends()
        with record() as recorded:
            transport(hooks, client, server, ONE_WAY, method=PLAIN)
        assert recorded.events == []

    def test_message_sent_during_an_event_is_not_recorded(self, hooks: FlowTracer) -> None:
        client, server = ends()

        class Meddler:
            """An argument whose conversion to str sends a message."""

            def __str__(self) -> str:
                transport(hooks, client, server, ONE_WAY)
                return "meddler"

        inner = RpcMethod("Pinger", "Inner", 1, "test.tracer")
        inner.service = Meddler()  # type: ignore[assignment]
        with record() as recorded:
            transport(hooks, client, server, ONE_WAY, method=inner)
        assert len([event for event in recorded.events if event.kind == BEGIN]) == 2
        assert flows.stats() == {}


class TestIncomingFlowId:
    """Messages sent by a handler contain the id of the handled message."""

    def test_handlers_can_be_nested(self, hooks: FlowTracer) -> None:
        outer_client, outer_server = ends(5)
        inner_client, inner_server = ends(6)
        with record() as recorded:
            outer = hooks.received(outer_server, PING, REQUEST, 4)
            assert outer is not None
            with outer:
                transport(hooks, inner_client, inner_server, ONE_WAY)
                transport(hooks, outer_server, outer_client, REPLY, 4)
            assert flows.incoming() == 0
            transport(hooks, inner_client, inner_server, ONE_WAY)
        first = recorded.events[0].flows[0]
        found = [e.args.get("incoming", 0) % (1 << 64) for e in recorded.events if e.kind in (1, 3)]
        assert found == [0, first, 0, 0, 0, 0, 0]

    def test_handler_that_ends_in_another_context_does_not_reset_the_incoming_id(
        self, hooks: FlowTracer
    ) -> None:
        _, server = ends()
        with record() as recorded:
            seen = hooks.received(server, PING, REQUEST, 4)
            assert seen is not None
            copy_context().run(seen.__enter__)
            seen.__exit__(None, None, None)
        assert recorded.kinds == "BE"
        assert flows.incoming() == 0

    def test_incoming_id_is_0_without_a_session(self, hooks: FlowTracer) -> None:
        _, server = ends()
        assert hooks.received(server, PING, REQUEST, 4) is None
        assert flows.incoming() == 0


class TestFlowIdSchemes:
    @pytest.mark.parametrize("scheme", ["hash", "rfc0035"])
    def test_sender_and_receiver_compute_the_same_flow_id(self, scheme: str) -> None:
        with flows_installed(scheme), record() as recorded:
            hooks = rpc_hooks.hooks
            assert isinstance(hooks, FlowTracer)
            client, server = ends()
            transport(hooks, client, server, REQUEST, 8)
        ((out, into),) = flow_pairs(recorded.events)
        assert out == into != 0
        if scheme == "rfc0035":
            assert out == 7 << 48 | 0x1234 << 16 | 8
