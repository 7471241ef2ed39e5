"""The real trace processor shows interleaved asynchronous handlers and their calls correctly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fidl_support.flow import Flow, flow
from stretto import flows
from stretto_fidl.bindings import channel
from stretto_fidl.transport import AsyncClient, AsyncServer
from tests.support.oracle import Oracle, missing
from tests.support.recorded_events import record
from tests.support.traced_greeter import flows_installed

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

CALLS = 12


class Shop(Flow):
    """A server whose handler of `Later` calls another server before it replies."""

    def __init__(self, warehouse: Any) -> None:
        super().__init__()
        self.warehouse = warehouse
        self.doors = [asyncio.Event() for _ in range(CALLS)]
        self.inside = 0

    async def Later(self, request: Any) -> Any:  # noqa: N802
        self.inside += 1
        await self.doors[request.number].wait()
        first = asyncio.create_task(self.order(2 * request.number))
        await self.order(2 * request.number + 1)
        await first
        await self.doors[-1 - request.number].wait()
        return flow.FlowLaterResponse(number=request.number)

    async def order(self, number: int) -> None:
        await self.warehouse.Later(number=number)


@asynccontextmanager
async def connected(make_handler: Any) -> AsyncIterator[Any]:
    near, far = channel()
    serving = asyncio.create_task(AsyncServer(flow.Flow, far, make_handler()).serve())
    async with AsyncClient(flow.Flow, near) as client:
        yield client
    await serving


async def run_interleaved_calls() -> None:
    async with connected(Flow) as warehouse:
        shop = Shop(warehouse)
        async with connected(lambda: shop) as client:
            calls = [asyncio.create_task(client.Later(number=number)) for number in range(CALLS)]
            while shop.inside < CALLS:
                await asyncio.sleep(0)
            # The handlers reply in the order of their requests.
            for door in shop.doors:
                door.set()
                await asyncio.sleep(0)
            answers = await asyncio.gather(*calls)
            assert [answer.number for answer in answers] == list(range(CALLS))


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    with flows_installed():
        with record() as recorded:
            asyncio.run(run_interleaved_calls())
        assert flows.stats() == {}
    judge = Oracle(recorded.trace)
    assert judge.errors() == []
    return judge


MESSAGES = """
select s.id, s.track_id, s.ts, s.dur, s.depth,
       extract_arg(s.arg_set_id, 'debug.role'), extract_arg(s.arg_set_id, 'debug.kind'),
       extract_arg(s.arg_set_id, 'debug.txid'), extract_arg(s.arg_set_id, 'debug.incoming')
from slice s where s.category = 'test.fidl' order by s.ts, s.id
"""


def test_each_handler_has_its_own_track(oracle: Oracle) -> None:
    rows = oracle.query(MESSAGES)
    asyncs = [row for row in rows if row[5:7] == ("receive", "request") and row[4] == 0]
    shop = [row for row in asyncs if row[3] > 0]
    assert len({row[1] for row in shop}) >= CALLS
    for _, track, begin, duration, *_ in shop:
        assert duration >= 0
        # A slice that begins on a handler's track while the handler runs is nested in the handler's
        # slice.
        inside = [row for row in rows if row[1] == track and begin < row[2] < begin + duration]
        assert inside
        assert all(row[4] > 0 and row[2] + row[3] <= begin + duration for row in inside)
        assert sum(row[5:7] == ("send", "reply") for row in inside) == 1
    # The handlers overlap, so they can't share a track.
    begins, ends = [row[2] for row in shop[:CALLS]], [row[2] + row[3] for row in shop[:CALLS]]
    assert max(begins) < min(ends)


def test_calls_made_by_a_handler_refer_to_the_message_that_it_handles(oracle: Oracle) -> None:
    rows = {row[0]: row for row in oracle.query(MESSAGES)}
    handled = {
        trace_id: rows[into]
        for into, trace_id in oracle.query("select slice_in, trace_id from flow")
        if rows[into][5:7] == ("receive", "request")
    }
    caused = [row for row in rows.values() if row[8] is not None]
    assert all(row[5:7] == ("send", "request") for row in caused)
    assert len(caused) == 2 * CALLS
    orders: dict[int, int] = {}
    for _, _, begin, duration, *_, incoming in caused:
        _, _, handler_begin, handler_duration, *_ = handled[incoming]
        assert handler_begin <= begin
        assert begin + duration <= handler_begin + handler_duration
        orders[incoming] = orders.get(incoming, 0) + 1
    # Each handler makes two calls: one directly, and one in a task that the handler starts.
    assert sorted(orders.values()) == [2] * CALLS


def test_incoming_flow_is_set_only_inside_a_handler() -> None:
    seen: list[int] = []

    class Looking(Flow):
        async def Later(self, request: Any) -> Any:  # noqa: N802
            seen.append(flows.incoming())
            await asyncio.sleep(0)
            seen.append(await asyncio.to_thread(flows.incoming))
            return flow.FlowLaterResponse(number=request.number)

    async def main() -> None:
        async with connected(Looking) as client:
            await client.Later(number=1)
            assert flows.incoming() == 0
            await client.Later(number=2)
            assert flows.incoming() == 0

    with flows_installed(), record():
        asyncio.run(main())
    assert seen[0] == seen[1] != seen[2] == seen[3]
    assert 0 not in seen
