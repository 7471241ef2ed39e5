"""Calls over Stretto's own IPC become slices and flows."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from stretto import flows
from stretto.base import rpc_hooks
from stretto.base.errors import ConfigError
from tests.support.recorded_events import BEGIN, END, INSTANT, Event, record
from tests.support.traced_greeter import TracedGreeter, flows_installed


@pytest.fixture
def greeter() -> Iterator[TracedGreeter]:
    with flows_installed():
        made = TracedGreeter()
        yield made
        made.close()


def points(events: list[Event]) -> list[tuple[str, str, str]]:
    """Return (role, kind, method) of each message's slice or instant."""
    return [
        (event.args["role"], event.args["kind"], event.args["method"])
        for event in events
        if event.kind != END
    ]


def flow_of(event: Event) -> int:
    (flow,) = event.flows + event.terminating_flows
    return flow


class TestTracedCalls:
    def test_call_has_four_events_with_the_same_flow(self, greeter: TracedGreeter) -> None:
        with record() as recorded:
            greeter.call("Echo", b"12345")
            greeter.run()
        assert recorded.kinds == "BEBIEI"
        call, _, handler, sent, _, received = recorded.events
        assert points(recorded.events) == [
            ("send", "request", "Echo"),
            ("receive", "request", "Echo"),
            ("send", "reply", "Echo"),
            ("receive", "reply", "Echo"),
        ]
        assert len({flow_of(event) for event in (call, handler, sent, received)}) == 1
        assert [bool(e.terminating_flows) for e in (call, handler, sent, received)] == [
            False, False, False, True,
        ]  # fmt: skip
        assert call.name == "Echo"
        assert call.category == "test.greeter"
        assert call.args == {
            "role": "send", "method": "Echo", "service": "Traced", "kind": "request",
            "txid": 2, "ordinal": 1, "bytes": 5,
        }  # fmt: skip
        assert call.timestamp < handler.timestamp < received.timestamp

    def test_each_one_way_message_has_its_own_flow(self, greeter: TracedGreeter) -> None:
        with record() as recorded:
            for _ in range(3):
                greeter.call("Echo", one_way=True)
            greeter.run()
        begins = [event for event in recorded.events if event.kind == BEGIN]
        assert (
            points(begins)
            == [("send", "one-way", "Echo")] * 3 + [("receive", "one-way", "Echo")] * 3
        )
        ids = [flow_of(event) for event in begins]
        assert ids[:3] == ids[3:]
        assert len(set(ids)) == 3
        assert all(event.terminating_flows for event in begins[3:])

    def test_each_part_of_a_reply_has_its_own_flow(self, greeter: TracedGreeter) -> None:
        with record() as recorded:
            greeter.call("Count", b"3")
            greeter.run()
        instants = [event for event in recorded.events if event.kind == INSTANT]
        ids = [flow_of(event) for event in instants]
        assert ids[:3] == ids[3:]
        assert len(set(ids)) == 3
        assert ids[0] == flow_of(recorded.events[0])

    def test_late_reply_is_recorded_as_an_instant_with_the_flow_of_its_call(
        self, greeter: TracedGreeter
    ) -> None:
        with record() as recorded:
            greeter.call("Later")
            greeter.run()
            greeter.later[0].resolve(greeter_reply())
            greeter.run()
        assert recorded.kinds == "BEBEII"
        assert len({flow_of(event) for event in recorded.events if event.kind != END}) == 1

    @pytest.mark.parametrize("method", ["Refuse", "Crash"])
    def test_request_of_a_raising_handler_is_rejected_and_its_slice_ends(
        self, greeter: TracedGreeter, method: str
    ) -> None:
        with record() as recorded:
            greeter.call(method)
            if method == "Crash":
                with pytest.raises(ZeroDivisionError):
                    greeter.run()
            greeter.run()
        kinds = recorded.kinds
        assert kinds.count("B") == kinds.count("E") == 2
        assert kinds.count("I") == 2
        assert greeter.replies == [None]

    def test_method_without_a_category_is_not_recorded(self, greeter: TracedGreeter) -> None:
        with record() as recorded:
            greeter.call("Hush")
            greeter.run()
        assert recorded.events == []
        assert len(greeter.replies) == 1

    def test_disabled_category_is_not_recorded(self, greeter: TracedGreeter) -> None:
        with record(disabled=["test.greeter"]) as recorded:
            greeter.call("Echo")
            greeter.run()
        assert recorded.events == []


def greeter_reply() -> object:
    from stretto.ipc.service import Raw

    return Raw(b"late")


class TestFlowKeys:
    def test_flow_key_given_to_both_ends_needs_no_socket(self) -> None:
        with flows_installed():
            greeter = TracedGreeter(flow_key=99, sockets=False)
            with record() as recorded:
                greeter.call("Echo")
                greeter.run()
            greeter.close()
            assert greeter.host.channel.key == 99
            assert len({flow_of(event) for event in recorded.events if event.kind != END}) == 1

    def test_messages_without_a_key_have_no_flow_and_are_counted(self) -> None:
        with flows_installed():
            greeter = TracedGreeter(sockets=False)
            with record() as recorded:
                greeter.call("Echo")
                greeter.run()
            greeter.close()
            assert recorded.kinds == "BEBIEI"
            assert not any(event.flows or event.terminating_flows for event in recorded.events)
            assert flows.stats() == {"no socket": 4}

    def test_bind_request_is_longer_only_if_it_contains_a_flow_key(self) -> None:
        plain = TracedGreeter()
        agreed = TracedGreeter(flow_key=7)
        sizes = [len(g.pair.client_outbox.sent[0].encode()) for g in (plain, agreed)]
        plain.close()
        agreed.close()
        assert sizes[1] == sizes[0] + 11

    def test_forked_child_records_no_flows_on_the_connection_of_the_parent(
        self, greeter: TracedGreeter
    ) -> None:
        with record():
            greeter.call("Echo")
            greeter.run()
        read, write = os.pipe()
        with warnings.catch_warnings():
            # Python warns if a process with several threads forks.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            verdict = b"failed"
            try:
                with record() as recorded:
                    greeter.call("Echo")
                    greeter.run()
                events = recorded.events
                silent = not any(event.flows or event.terminating_flows for event in events)
                verdict = f"{len(events)} {silent} {flows.stats()}".encode()
            finally:
                os.write(write, verdict)
                os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        assert os.read(read, 200) == b"6 True {'forked': 4}"
        os.close(read)


class TestInstallationOfHooks:
    def test_import_installs_no_hooks(self) -> None:
        assert rpc_hooks.hooks is None
        assert not flows.installed()
        assert flows.stats() == {}

    def test_calls_without_installed_flow_hooks_are_not_recorded(self) -> None:
        greeter = TracedGreeter()
        with record() as recorded:
            greeter.call("Echo")
            greeter.run()
        greeter.close()
        assert recorded.events == []

    def test_unknown_flow_id_schemes_are_refused(self) -> None:
        with pytest.raises(flows.installation.ConfigError, match="anchored, hash, rfc0035"):  # type: ignore[attr-defined]
            flows.install("random")

    def test_installing_flow_tracing_twice_with_the_same_options_changes_nothing(self) -> None:
        with flows_installed("hash", bodies=["b", "a"]):
            before = rpc_hooks.hooks
            flows.install("hash", bodies=("a", "b"))
            assert rpc_hooks.hooks is before

    @pytest.mark.parametrize(
        "options", [{"scheme": "hash"}, {"tcp": True}, {"own_ports": True}, {"bodies": ["a"]}]
    )
    def test_second_installation_with_other_options_is_an_error(
        self, options: dict[str, Any]
    ) -> None:
        with flows_installed():
            before = rpc_hooks.hooks
            with pytest.raises(
                ConfigError, match=r"installed already, with \('anchored', tcp=False"
            ):
                flows.install(**options)
            assert rpc_hooks.hooks is before
        with flows_installed("hash"):
            pass

    def test_rpc_category_can_be_disabled(self, greeter: TracedGreeter) -> None:
        switch = rpc_hooks.switch("test.greeter")
        seen: list[bool] = []
        switch.listen(seen.append)
        with record() as recorded:
            flows.disable("test.greeter")
            greeter.call("Echo")
            greeter.run()
            flows.enable("test.greeter")
        assert recorded.events == []
        assert seen == [False, True, False, True, False]

    def test_uninstalling_flow_tracing_disables_the_categories_of_rpc_hooks(self) -> None:
        with record():
            with flows_installed():
                assert rpc_hooks.switch("test.greeter").enabled
            assert not rpc_hooks.switch("test.greeter").enabled
        assert rpc_hooks.hooks is None

    def test_invalid_category_name_is_counted(self) -> None:
        with flows_installed():
            assert not rpc_hooks.switch('bad "name"').enabled
            assert flows.stats() == {"bad category": 1}

    def test_category_created_during_a_session_is_enabled(self) -> None:
        with flows_installed(), record():
            assert rpc_hooks.switch("test.flows.late").enabled


class TestFlowsOfProducerAndConsumerPort:
    @pytest.mark.parametrize("own_ports", [False, True])
    def test_ports_of_stretto_are_traced_only_if_own_ports_is_set(self, *, own_ports: bool) -> None:
        with flows_installed(own_ports=own_ports), record(enabled=["stretto.ipc"]):
            assert rpc_hooks.switch("stretto.ipc").enabled == own_ports

    def test_ports_of_stretto_are_traced_only_if_their_category_is_enabled_by_name(self) -> None:
        with flows_installed(own_ports=True), record():
            assert not rpc_hooks.switch("stretto.ipc").enabled

    def test_methods_that_transport_trace_data_are_not_traced(self) -> None:
        from stretto.ports.consumer_port import CONSUMER_PORT
        from stretto.ports.producer_port import PRODUCER_PORT

        assert "Sync" in PRODUCER_PORT.traced
        assert "CommitData" not in PRODUCER_PORT.traced
        assert "EnableTracing" in CONSUMER_PORT.traced
        assert "ReadBuffers" not in CONSUMER_PORT.traced
