"""RPC messages are matched to calls, and calls are summarized."""

from __future__ import annotations

import io
from typing import Any

import stretto
from stretto.analysis.rpc_flows import Call, Message, RpcFlows, read_rpc_flows
from stretto.analysis.rpc_summary import Durations, by_method, select_calls, slowest, unmatched
from tests.support.recorded_events import record

category = stretto.Category("test.analysis")


class Writer:
    """Records sent messages on the track "sender" and received messages on the track "receiver"."""

    def __init__(self) -> None:
        self.tracks = {"send": stretto.Track("sender"), "receive": stretto.Track("receiver")}

    def __call__(
        self,
        role: str,
        kind: str,
        start: int,
        end: int = 0,
        *,
        flow: int | None = None,
        method: str = "Hello",
        **more: Any,
    ) -> None:
        track = self.tracks[role]
        arguments = {"role": role, "kind": kind, "method": method, "service": "Greeter", **more}
        if end:
            category.begin("x", track=track, timestamp=start, flow=flow, args=arguments)
            category.end(track=track, timestamp=end)
        else:
            category.instant("x", track=track, timestamp=start, flow=flow, args=arguments)


def read(trace: bytes) -> RpcFlows:
    return read_rpc_flows(io.BytesIO(trace))


def test_call_with_reply_has_latency_queueing_and_service_time() -> None:
    write = Writer()
    with record() as recorded:
        category.instant("something else", number=1)
        # The receiver's events may be read before the sender's events.
        write("receive", "request", 1300, 1900, flow=7)
        write("send", "reply", 1800, flow=7)
        write("send", "request", 1000, 2000, flow=7)
        write("receive", "reply", 1950, flow=7)
    flows = read(recorded.trace)
    (call,) = flows.calls
    assert (call.method, call.kind, call.matched) == ("Greeter.Hello", "request", True)
    assert (call.latency_ns, call.queueing_ns, call.service_ns) == (950, 300, 500)
    assert call.received is not None
    assert call.received.end == 1900
    assert flows.places[call.received.track].endswith("/ receiver")
    assert flows.damaged == 0


def test_request_has_the_name_of_its_route_if_the_server_knows_it() -> None:
    write = Writer()
    handled = {1: "GET /items/{number}", 2: "GET /slow", 3: "GET"}
    with record() as recorded:
        for flow, route in handled.items():
            write("send", "request", 1000 * flow, flow=flow, method="GET host:80", service="http")
            write("receive", "request", 1000 * flow + 5, flow=flow, method=route, service="http")
    calls = read(recorded.trace).calls
    assert [call.method for call in calls] == [
        "http.GET /items/{number}", "http.GET /slow", "http.GET host:80"
    ]  # fmt: skip


def test_one_way_messages_events_and_reply_parts_are_matched() -> None:
    write = Writer()
    with record() as recorded:
        for flow, kind in enumerate(("one-way", "event", "reply"), 1):
            write("send", kind, 100 * flow, 100 * flow + 5, flow=flow)
            write("receive", kind, 100 * flow + 40, 100 * flow + 60, flow=flow)
    calls = read(recorded.trace).calls
    assert [call.kind for call in calls] == ["one-way", "event", "reply"]
    assert all(call.matched for call in calls)
    assert [call.latency_ns for call in calls] == [40, 40, 40]
    assert [call.service_ns for call in calls] == [20, 20, None]


def test_message_recorded_at_only_one_end_is_unmatched() -> None:
    write = Writer()
    with record() as recorded:
        write("send", "one-way", 10, flow=1)
        write("receive", "one-way", 20, flow=2)
        write("send", "one-way", 30)
        write("receive", "one-way", 40)
        write("send", "request", 50, flow=5)
        write("receive", "request", 60, flow=5)
        write("send", "reply", 70, flow=5)
    calls = read(recorded.trace).calls
    assert len(calls) == 5
    assert unmatched(calls) == calls
    assert [call.latency_ns for call in calls] == [None] * 5


def test_call_aborted_by_the_server_is_matched_without_a_sent_reply() -> None:
    """`grpc.aio` sends the status before the handler is notified of the abort."""
    write = Writer()
    with record() as recorded:
        write("send", "request", 10, 15, flow=1)
        write("receive", "request", 20, 50, flow=1)
        write("receive", "reply", 40, flow=1)
    (call,) = read(recorded.trace).calls
    assert (call.latency_ns, call.queueing_ns, call.service_ns) == (30, 10, 30)
    assert unmatched([call]) == []


def test_reply_without_a_received_request_is_unmatched() -> None:
    write = Writer()
    with record() as recorded:
        write("send", "request", 10, 15, flow=1)
        write("receive", "reply", 40, flow=1)
        write("receive", "reply", 40, flow=2)
    calls = read(recorded.trace).calls
    assert unmatched(calls) == calls


def test_reused_flow_id_begins_a_new_call() -> None:
    write = Writer()
    with record() as recorded:
        for start in (100, 200):
            write("send", "one-way", start, flow=3)
            write("receive", "one-way", start + 7, flow=3)
    assert [call.latency_ns for call in read(recorded.trace).calls] == [7, 7]


def test_slices_that_are_no_messages_are_ignored() -> None:
    write = Writer()
    with record() as recorded:
        track = write.tracks["receive"]
        category.begin("outer", track=track, timestamp=5)
        write("receive", "one-way", 10, flow=1)
        category.begin("x", track=track, timestamp=20, role="receive", method="Bare")
        category.begin("inner", track=track, timestamp=25)
        category.end(track=track, timestamp=30)
        category.end(track=track, timestamp=50)
        category.end(track=track, timestamp=60)
        category.instant("x", role="neither", method="Bare")
        category.instant("x", role="send", method=5)
    calls = read(recorded.trace).calls
    assert [(call.method, call.service_ns) for call in calls] == [
        ("Greeter.Hello", None),
        ("Bare", 30),
    ]


def call_of(method: str, latency: int, kind: str = "request") -> Call:
    def at(role: str, timestamp: int) -> Message:
        return Message(role, method, kind, timestamp, 1, 1)

    return Call(
        method, kind, at("send", 0), at("receive", 1), at("send", 2), at("receive", latency)
    )


def test_each_percentile_equals_a_measured_value() -> None:
    assert Durations.of([None]) == Durations()
    assert Durations.of([5]) == Durations(5, 5, 5, 5)
    assert Durations.of(range(1, 101)) == Durations(50, 90, 99, 100)
    assert Durations.of([3, 1, 2, None]) == Durations(2, 3, 3, 3)


def test_calls_are_summarized_by_method_and_kind() -> None:
    calls = [call_of("S.A", 10), call_of("S.B", 30), call_of("S.B", 20), Call("S.B", "event")]
    summaries = by_method(calls)
    assert [(each.method, each.kind, each.count, each.unmatched) for each in summaries] == [
        ("S.B", "request", 2, 0),
        ("S.A", "request", 1, 0),
        ("S.B", "event", 1, 1),
    ]
    assert summaries[0].latency == Durations(20, 30, 30, 30)
    assert summaries[0].queueing == Durations(1, 1, 1, 1)
    assert [call.latency_ns for call in slowest(calls)][:2] == [30, 20]
    assert [call.method for call in select_calls(calls, "*.A")] == ["S.A"]
