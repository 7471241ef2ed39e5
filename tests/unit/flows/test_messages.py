"""MessageFlows: each flow connects a sent message with the received message of the same number."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from stretto import flows
from stretto.base.errors import ConfigError
from stretto.flows.messages import MessageFlows
from tests.support.flow_chains import ONE_WAY, arrows
from tests.support.recorded_events import END, Event, record
from tests.support.traced_greeter import flows_installed


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    with flows_installed():
        yield


def ends() -> tuple[MessageFlows, MessageFlows]:
    """Return the MessageFlows of a client and of a server that share a flow key."""
    client = MessageFlows(None, category="test.messages", is_server=False, key=3)
    return client, MessageFlows(None, category="test.messages", is_server=True, key=3)


def one_message(sender: MessageFlows, receiver: MessageFlows, name: str = "x") -> None:
    with sender.sending(name):
        pass
    with receiver.handling(name):
        pass


def with_flow(events: list[Event]) -> set[int]:
    """Return the indices of the messages that have a flow."""
    begins = [event for event in events if event.kind != END]
    return {n for n, event in enumerate(begins) if event.flows or event.terminating_flows}


class TestMessageFlows:
    def test_messages_of_both_directions_have_flows(self) -> None:
        near, far = socket.socketpair()
        with near, far, record() as recorded:
            client = MessageFlows(near, category="test.messages", is_server=False)
            server = MessageFlows(far, category="test.messages", is_server=True)
            for _ in range(3):
                for sender, receiver, name in ((client, server, "up"), (server, client, "down")):
                    with sender.sending(name):
                        pass
                    with receiver.handling(name):
                        pass
        assert arrows(recorded.events, "up") == [ONE_WAY] * 3
        assert arrows(recorded.events, "down") == [ONE_WAY] * 3

    def test_messages_sent_before_flow_tracing_is_installed_are_counted(self) -> None:
        flows.uninstall()
        client = MessageFlows(None, category="test.messages", is_server=False, key=3)
        server = MessageFlows(None, category="test.messages", is_server=True, key=3)
        with client.sending("x"):
            pass
        with server.handling("x"):
            pass
        flows.install()
        with record() as recorded:
            with client.sending("x"):
                pass
            with server.handling("x"):
                pass
        assert arrows(recorded.events, "x") == [ONE_WAY]


class TestLostSynchronisation:
    """After a possible loss, messages get no flow; the statistics contain the reason."""

    def test_failed_send_suppresses_flows_of_its_direction(self) -> None:
        client, server = ends()
        with record() as recorded:
            one_message(client, server)
            with pytest.raises(TimeoutError), client.sending("x"):
                # A `drain` that raises after the write may have sent the message.
                raise TimeoutError
            with server.handling("x"):
                pass
            one_message(client, server)
            one_message(server, client)
        # Event 3, the message that the client sends after the failure, has no flow.
        assert with_flow(recorded.events) == {0, 1, 2, 4, 5, 6}
        assert flows.stats() == {"not synchronised": 1}
        assert arrows([recorded.events[n] for n in (0, 2)], "x") == [ONE_WAY]

    def test_nested_sends_have_no_flow(self) -> None:
        client, _ = ends()
        with record() as recorded, client.sending("a"), client.sending("b"):
            pass
        assert with_flow(recorded.events) == set()
        assert flows.stats() == {"not synchronised": 2}

    @pytest.mark.parametrize("outgoing", [False, True])
    def test_lost_messages_suppress_flows_of_their_direction(self, *, outgoing: bool) -> None:
        client, server = ends()
        server.lost(outgoing=outgoing)
        with record() as recorded:
            one_message(client, server)
            one_message(server, client)
        assert with_flow(recorded.events) == {0, 1, 2, 3} - {2 if outgoing else 1}
        assert flows.stats() == {"not synchronised": 1}

    def test_exception_in_a_handler_does_not_break_flows(self) -> None:
        client, server = ends()
        with record() as recorded:
            with client.sending("x"):
                pass
            with pytest.raises(KeyError), server.handling("x"):
                raise KeyError
            one_message(client, server)
        assert arrows(recorded.events, "x") == [ONE_WAY] * 2


def test_size_of_a_message_is_recorded_if_known() -> None:
    client, server = ends()
    with record() as recorded:
        with client.sending("x", size=0):
            pass
        with server.handling("x"):
            pass
    sent, received = (event for event in recorded.events if event.kind != END)
    assert sent.args["bytes"] == 0
    assert "bytes" not in received.args


def test_object_that_is_no_socket_is_refused() -> None:
    with pytest.raises(ConfigError, match="'x' isn't a socket"):
        MessageFlows("x", category="test.messages", is_server=False)  # type: ignore[arg-type]
