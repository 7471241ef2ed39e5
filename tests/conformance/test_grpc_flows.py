"""Perfetto's trace processor finds the arrows of gRPC calls between processes."""

from __future__ import annotations

import io
import sys
from collections import Counter

import pytest

from stretto.analysis.rpc_flows import read_rpc_flows
from stretto.analysis.rpc_summary import unmatched
from tests.support.oracle import Oracle, missing
from tests.support.recorded import record

pytest.importorskip("grpc", reason="grpcio is not installed")
pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

from tests.support import grpc_processes  # noqa: E402

CALLS = grpc_processes.CALLS
ARROWS = """
select extract_arg(o.arg_set_id, 'debug.method'), extract_arg(i.arg_set_id, 'debug.method'),
       extract_arg(o.arg_set_id, 'debug.role') || ' ' || extract_arg(o.arg_set_id, 'debug.kind'),
       extract_arg(i.arg_set_id, 'debug.role') || ' ' || extract_arg(i.arg_set_id, 'debug.kind'),
       o.ts <= i.ts
from flow join slice o on o.id = slice_out join slice i on i.id = slice_in
"""
CALL = {
    ("send request", "receive request"): CALLS,
    ("receive request", "send reply"): CALLS,
    ("send reply", "receive reply"): CALLS,
}
ABORTED = {
    ("send request", "receive request"): CALLS,
    ("receive request", "receive reply"): CALLS,
}
LATE = {("send request", "receive request"), ("receive request", "send reply")}
"""Arrows that cancelled calls may have: their replies are dropped, handlers may not run."""
EXPECTED = {
    # Half of the calls come from the client, half from handlers of the asyncio server.
    "One": dict.fromkeys(CALL, 2 * CALLS),
    "Many": CALL,
    "Fail": CALL,
    "Release": dict.fromkeys(CALL, 1),
    "AsyncOne": CALL,
    "AsyncMany": CALL,
    "AsyncFail": ABORTED,
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    run = record(
        tmp_path_factory.mktemp("grpc") / "trace.pftrace",
        *("--no-functions", "--no-asyncio", "--", grpc_processes.__file__),
        PYTHONPATH=":".join(sys.path),
    )
    assert run.status == 0, run.stderr
    return run.trace


@pytest.fixture(scope="module")
def oracle(trace: bytes) -> Oracle:
    judge = Oracle(trace)
    assert judge.errors() == []
    return judge


def test_arrows_of_grpc_calls_equal_the_model(oracle: Oracle) -> None:
    found: dict[str, Counter[tuple[str, str]]] = {}
    for out, into, sender, receiver, forward in oracle.query(ARROWS):
        assert out == into
        assert forward
        found.setdefault(out, Counter())[sender, receiver] += 1
    assert set(found.pop("Late")) <= LATE
    assert found == EXPECTED


def test_all_calls_except_cancelled_ones_are_matched(trace: bytes) -> None:
    calls = read_rpc_flows(io.BytesIO(trace)).calls
    assert sum(call.method.endswith(".AsyncFail") for call in calls) == CALLS
    given_up = {call.method.rpartition(".")[2] for call in unmatched(calls)}
    assert given_up == {"Late"}


def test_calls_made_by_a_grpc_handler_name_the_flow_of_the_handled_request(oracle: Oracle) -> None:
    query = """
    select count(distinct f.trace_id) from flow f
    join slice h on h.id = f.slice_in and h.name = 'AsyncOne'
    join slice c on extract_arg(c.arg_set_id, 'debug.incoming') = f.trace_id and c.name = 'One'
    """
    assert oracle.query(query) == [(CALLS,)]
