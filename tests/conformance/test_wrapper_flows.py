"""Perfetto's trace processor finds the arrows of wrapped queues, pipes and HTTP requests."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from tests.support import wrapped_transports
from tests.support.oracle import Oracle, missing
from tests.support.recorded import record

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

ITEMS = wrapped_transports.ITEMS
ARROWS = """
select o.name, i.name,
       extract_arg(o.arg_set_id, 'debug.role') || ' ' || extract_arg(o.arg_set_id, 'debug.kind'),
       extract_arg(i.arg_set_id, 'debug.role') || ' ' || extract_arg(i.arg_set_id, 'debug.kind'),
       extract_arg(o.arg_set_id, 'debug.txid') = extract_arg(i.arg_set_id, 'debug.txid'),
       po.upid = pi.upid
from flow
join slice o on o.id = slice_out join slice i on i.id = slice_in
join thread_track t on t.id = o.track_id join thread po using (utid)
join thread_track u on u.id = i.track_id join thread pi on pi.utid = u.utid
"""


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    folder = tmp_path_factory.mktemp("wrapped")
    run = record(
        folder / "trace.pftrace",
        *("--no-functions", "--no-asyncio", "--", wrapped_transports.__file__, str(folder)),
        PYTHONPATH=":".join(sys.path),
    )
    assert run.status == 0, run.stderr
    judge = Oracle(run.trace)
    assert judge.errors() == []
    return judge


@pytest.mark.parametrize("name", ["queued", "joinable", "simple", "piped", "streamed"])
def test_each_queue_item_has_an_arrow_to_the_other_process(oracle: Oracle, name: str) -> None:
    arrows = [row for row in oracle.query(ARROWS) if name in row[:2]]
    assert arrows == [(name, name, "send one-way", "receive one-way", 1, 0)] * ITEMS


@pytest.mark.parametrize("path", ["/wsgi", "/client"])
def test_request_over_http_has_three_arrows(oracle: Oracle, path: str) -> None:
    name = f"GET {path}"
    of_method = f"{ARROWS} where extract_arg(o.arg_set_id, 'debug.method') = '{name}'"
    assert Counter(row[:4] for row in oracle.query(of_method)) == {
        (name, name, "send request", "receive request"): ITEMS,
        (name, "reply", "receive request", "send reply"): ITEMS,
        ("reply", "reply", "send reply", "receive reply"): ITEMS,
    }


def test_trace_has_only_the_expected_arrows(oracle: Oracle) -> None:
    assert oracle.query("select count() from flow") == [(5 * ITEMS + 2 * 3 * ITEMS,)]
