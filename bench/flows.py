"""Measures the cost of flow tracing of RPC.

    python bench/flows.py [--json] [--rounds N]

Each row A/B compares A with B. The first two rows use a transport that drops all messages.

inlined_check/limit     `if switch.enabled` in a stub while tracing is off; the limit is 5 ns
swapped_stub/plain      a call of a swapped stub while tracing is off; a call of a method without
                        a category; the code of both stubs is the same
ipc_untraced/no_hooks   a call over our IPC whose category is not recorded; a call without hooks
ipc_traced/otel         the time that tracing adds to a call over our IPC; the time that
                        OpenTelemetry's instrumentation adds to a grpcio call in the same run
fidl_traced/otel        like ipc_traced, for a FIDL call; client and server in one asyncio loop
fidl_blocking_traced/otel   like ipc_traced, for a blocking FIDL client; the server is a thread
grpcio_off/no_op        a grpcio call through our interceptors whose category is not recorded; a
                        call through interceptors that do nothing
grpcio_wrapper/limit    the time that our interceptors add to a grpcio call with a `traceparent`,
                        compared with interceptors that do nothing; the limit is 20 us
grpcio_header/limit     like grpcio_wrapper, for a call without `traceparent`: our interceptors add
                        a header; with interceptors that do nothing, the program adds the header

The figures of the first two rows are minima over all rounds; bench/_rounds.py explains the others.
A call is a request and a reply, so its flow has four points. OpenTelemetry is the package
opentelemetry-instrumentation-grpc in client and server, with the SDK, a batch processor and an
exporter that drops the spans. Generated and loaded FIDL bindings have the same stubs. `target` is
the maximum of `ratio`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _flow_ends import Ipc
from _grpc_calls import GrpcCalls
from _rounds import Rounds

import stretto
from stretto import flows
from stretto.base.rpc_hooks import TraceSwitch
from stretto.client.recording import recording_config
from stretto_fidl.bindings.protocols import TWO_WAY
from stretto_fidl.transport.stubs import stub_class

sys.path.append(str(Path(__file__).parents[1] / "stretto-fidl" / "bench"))

from _fidl_ends import Fidl, FidlAsync, bench  # importable because of sys.path above

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKS = 20_000
BLOCKS = 10
CHECK_LIMIT_NS = 5.0
WRAPPER_LIMIT_US = 20.0
OTEL_TARGET = 0.05

switch = TraceSwitch("bench.never")


def plain_stub(send: Callable[[bytes], None], data: bytes) -> None:
    send(data)


def checked_stub(send: Callable[[bytes], None], data: bytes) -> None:
    if switch.enabled:
        raise AssertionError
    send(data)


def nothing(_data: bytes) -> None:
    """A transport that drops all messages."""


class NullClient:
    """Return a FIDL client on a null transport."""

    def _call(self, method: Any, payload: Any, members: Any) -> None:
        pass

    def _traced_call(self, method: Any, payload: Any, members: Any) -> None:
        raise AssertionError


class Checks:
    """Measures what disabled flow tracing adds to the time of a stub."""

    def __init__(self) -> None:
        stubs = stub_class(NullClient, bench.Bench, (TWO_WAY,))
        client = stubs()
        swapped, plain = stubs.Echo.__code__, stubs.Plain.__code__
        for what in ("co_code", "co_consts", "co_names"):
            if getattr(swapped, what) != getattr(plain, what):
                raise SystemExit(f"the swapped stub has another {what}")
        self._calls: dict[str, tuple[Any, Any, Any]] = {
            "unchecked": (plain_stub, nothing, b""),
            "checked": (checked_stub, nothing, b""),
            "unswapped": (stubs.Plain, client, None),
            "swapped": (stubs.Echo, client, None),
        }
        self.ns: dict[str, float] = dict.fromkeys(self._calls, float("inf"))

    def run(self) -> None:
        """Measure all calls, and keep the shortest time of each."""
        for _ in range(BLOCKS):
            for name, (function, first, second) in self._calls.items():
                begin = time.perf_counter_ns()
                for _ in range(CHECKS):
                    function(first, second)
                ns = (time.perf_counter_ns() - begin) / CHECKS
                self.ns[name] = min(self.ns[name], ns)


def row(name: str, ours: float, peer: float, unit: str, target: float) -> dict[str, object]:
    return {
        "name": name,
        "ours": round(ours, 2),
        "peer": round(peer, 2),
        "unit": unit,
        "ratio": round(ours / peer, 3),
        "target": target,
    }


def make_rows(rounds: int) -> list[dict[str, object]]:
    checks = Checks()
    kinds = [Ipc, FidlAsync, Fidl, GrpcCalls]
    ipc, loop, blocking, grpc = measured = [Rounds() for _ in kinds]
    for _ in range(rounds):
        checks.run()
        # One session records all kinds of calls. If its ring buffer wraps, the cost stays the same.
        with stretto.TracingSession(recording_config(buffer_bytes=64 << 20)):
            for kind, each in zip(kinds, measured, strict=True):
                ends: Any = kind()
                each.run(ends.states)
                ends.close()
                flows.uninstall()
    ns = checks.ns
    otel = grpc.added("otel", "bare")
    return [
        row("inlined_check/limit", ns["checked"] - ns["unchecked"], CHECK_LIMIT_NS, "ns", 1.0),
        row("swapped_stub/plain", ns["swapped"], ns["unswapped"], "ns", 1.05),
        row("ipc_untraced/no_hooks", ipc.us("off"), ipc.us("untraced"), "us", 1.1),
        row("ipc_traced/otel", ipc.added("on", "untraced"), otel, "us", OTEL_TARGET),
        row("fidl_traced/otel", loop.added("on", "untraced"), otel, "us", OTEL_TARGET),
        row(
            "fidl_blocking_traced/otel",
            blocking.added("on", "untraced"),
            otel,
            "us",
            OTEL_TARGET,
        ),
        row("grpcio_off/no_op", grpc.us("off"), grpc.us("no-op"), "us", 1.05),
        row("grpcio_wrapper/limit", grpc.added("flows", "parent"), WRAPPER_LIMIT_US, "us", 1.0),
        row("grpcio_header/limit", grpc.added("header", "entry"), WRAPPER_LIMIT_US, "us", 1.0),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one object per row")
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    for each in make_rows(given.rounds):
        if given.json:
            print(json.dumps(each))
        else:
            print(
                "{name:30} {ours:10} {peer:10} {unit:3} {ratio:8} (at most {target})".format(**each)
            )


if __name__ == "__main__":
    main()
