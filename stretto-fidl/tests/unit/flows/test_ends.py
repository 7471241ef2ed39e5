"""Messages of a FIDL client that disconnects before the server starts have flow arrows."""

from __future__ import annotations

import asyncio

import pytest

from fidl_support.async_talk import AsyncTalker
from fidl_support.talk import Talker, load_talk
from stretto import flows
from stretto_fidl.bindings import channel
from stretto_fidl.transport import AsyncServer, Client, Server
from tests.support.recorded_events import END, record
from tests.support.traced_greeter import flows_installed

COUNT = 20


@pytest.mark.parametrize("kind", [Server, AsyncServer])
def test_messages_of_a_client_that_disconnected_early_have_arrows(kind: type) -> None:
    names = load_talk(traced="test.ends")
    with flows_installed(), record() as recorded:
        near, far = channel()
        handler = Talker(names)

        def talk() -> None:
            with Client(names.Talk, near) as client:
                for number in range(COUNT):
                    client.Fire(number=number)

        async def serve() -> None:
            server = AsyncServer(names.Talk, far, AsyncTalker())
            talk()
            await server.serve()

        if kind is AsyncServer:
            asyncio.run(serve())
        else:
            server = Server(names.Talk, far, handler)
            talk()
            server.serve()
        assert flows.stats() == {}
    begins = [event for event in recorded.events if event.kind != END]
    sent = [event.flows for event in begins if event.args["role"] == "send"]
    got = [event.terminating_flows for event in begins if event.args["role"] == "receive"]
    assert len(sent) == COUNT
    assert sent == got
    assert all(sent)
