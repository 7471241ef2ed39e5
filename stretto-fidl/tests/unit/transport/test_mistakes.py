"""Wrong arguments to a client or server raise errors at once, and no message is sent."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from fidl_support.talk import Talker, conversation, load_talk, serving, talk
from stretto_fidl.bindings import Event, channel
from stretto_fidl.codec import (
    TransactionHeader,
    WireError,
    decode,
    encode,
    encode_message,
    unpersist,
)
from stretto_fidl.codec.handle import HandleDisposition
from stretto_fidl.codec.message import Message
from stretto_fidl.errors import FidlError
from stretto_fidl.transport import AsyncClient, AsyncServer, Client, ClosedError, Server
from stretto_fidl.transport.message_socket import MessageSocket

REPLY = talk.TalkEchoResponse(number=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.Echo(5), "takes a TalkEchoRequest or its members, not .* class int"),
        (lambda c: c.Echo({"number": 1}), "class dict"),
        (lambda c: c.Echo(REPLY), "class TalkEchoResponse"),
        (lambda c: c.call("Echo", 5), "class int"),
        (lambda c: c.Fire(REPLY), "takes a TalkFireRequest"),
        (lambda c: c.Crash(5), "no arguments"),
        (lambda c: c.Echo(), "number"),
    ],
)
def test_payloads_of_a_wrong_class_are_not_sent(call, message: str) -> None:
    with conversation() as (client, _):
        with pytest.raises(TypeError, match=message):
            call(client)
        assert client.Echo(number=2).number == 2


def test_payload_from_another_load_of_the_library_is_accepted() -> None:
    other = load_talk()
    assert other.TalkEchoRequest is not talk.TalkEchoRequest
    with conversation() as (client, _):
        assert client.Echo(other.TalkEchoRequest(number=3)).number == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Nope", "has no method 'Nope'; it has Echo, Divide"),
        ("Fire", "Fire is one-way"),
        ("OnTick", "OnTick is an event"),
    ],
)
def test_call_by_the_name_of_an_event_or_one_way_method_is_refused(name: str, message: str) -> None:
    with conversation() as (client, _):
        with pytest.raises(FidlError, match=message):
            client.call(name, talk.TalkFireRequest(number=1))
        assert client.Echo(number=2).number == 2

    async def main() -> None:
        near, far = channel()
        async with AsyncClient(talk.Talk, near) as client:
            with pytest.raises(FidlError, match=message):
                await client.call(name)
        far.close()

    asyncio.run(main())


class Answers(Talker):
    """A server that replies with the object that the test has set."""

    answer: Any = None

    def Echo(self, request: Any) -> Any:  # noqa: N802
        return self.answer

    def Divide(self, request: Any) -> Any:  # noqa: N802
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (5, "class int"),
        (None, "returned None"),
        (talk.TalkLaterResponse(number=1), "class TalkLaterResponse"),
    ],
)
@pytest.mark.parametrize("name", ["Echo", "Divide"])
def test_reply_of_a_wrong_class_is_not_sent_and_ends_the_channel(
    name: str, answer: Any, message: str
) -> None:
    handler = Answers()
    handler.answer = answer
    near, far = channel()
    members = {"number": 1} if name == "Echo" else {"a": 1, "b": 1}
    with Client(talk.Talk, near) as client, serving(far, handler) as there:
        with pytest.raises(ClosedError, match="INTERNAL"):
            getattr(client, name)(**members)
        there.join()
        assert isinstance(there.error, FidlError)
        with pytest.raises(FidlError, match=f"{name} answers with a .*{message}"):
            raise there.error


def test_events_of_a_wrong_class_are_not_sent() -> None:
    with conversation() as (client, there):
        with pytest.raises(TypeError, match="takes a TalkOnTickRequest"):
            there.server.OnTick(REPLY)
        there.server.OnTick(number=3)
        assert client.next_event().payload.number == 3


def test_event_handler_that_lacks_a_method_gets_no_event() -> None:
    class Events:
        def OnTick(self, payload: Any) -> None:  # noqa: N802
            raise AssertionError

    with conversation() as (client, there):
        there.server.OnTick(number=3)
        with pytest.raises(FidlError, match=r"events of test.talk/Talk lacks OnRest"):
            client.dispatch_events(Events())
        assert client.next_event().payload.number == 3


def test_message_with_the_same_handle_twice_is_refused() -> None:
    near, far = channel()
    ours, event = MessageSocket(near), Event.create()
    data = TransactionHeader(1, 2).encode()
    with pytest.raises(WireError, match="twice"):
        ours.write(Message(data, [HandleDisposition(event), HandleDisposition(event)]))
    assert event.is_open
    with event.duplicate() as second:
        ours.write(Message(data, [HandleDisposition(event), HandleDisposition(second)]))
    ours.close()
    far.close()


@pytest.mark.parametrize("txid", [1 << 32, -1, "one"])
def test_transaction_id_out_of_range_is_refused(txid: Any) -> None:
    with pytest.raises(WireError, match="32 and 64 bits"):
        encode_message(TransactionHeader(txid, 1))


@pytest.mark.parametrize("value", [5, None, {"number": 1}])
def test_encode_refuses_objects_of_classes_outside_of_the_bindings(value: Any) -> None:
    with pytest.raises(TypeError, match="a class of the bindings"):
        encode(value)


@pytest.mark.parametrize("data", ["abc", 5, [1, 2]])
def test_decoding_data_other_than_bytes_is_refused(data: Any) -> None:
    with pytest.raises(TypeError, match="a message is bytes"):
        decode(talk.TalkEchoRequest, data)
    with pytest.raises(TypeError, match="a message is bytes"):
        unpersist(talk.TalkEchoRequest, data)


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        (Client, ["protocol", "end", "timeout", "event_limit"]),
        (AsyncClient, ["protocol", "end", "event_limit"]),
        (Server, ["protocol", "end", "handler", "in_flight"]),
        (AsyncServer, ["protocol", "end", "handler", "in_flight"]),
    ],
)
def test_clients_and_servers_have_the_documented_parameters(cls: type, names: list[str]) -> None:
    assert list(inspect.signature(cls).parameters) == names
