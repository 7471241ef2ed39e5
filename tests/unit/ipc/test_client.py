"""The IPC client against a real IPC host (cases of Perfetto's client_impl tests)."""

from __future__ import annotations

import os

import pytest

from stretto.base.errors import LocalProtocolError
from stretto.ipc.client import MAX_ARGS_BYTES, Client, ServiceProxy
from stretto.ipc.host import HostConnection
from stretto.ipc.service import Method, Raw, ServiceDescriptor
from stretto.protos.ipc import IPCFrame, SyncRequest
from stretto.testing.connection_pair import ConnectionPair
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.greeter import GREETER, Greeter

Replies = list[tuple[bytes | None, bool]]


class Link:
    """A client and a host, connected in memory on one task runner."""

    def __init__(self) -> None:
        self.runner = FakeTaskRunner()
        self.pair = ConnectionPair(self.runner)
        self.greeter = Greeter()
        self.client = Client(self.pair.client_outbox)
        self.host = HostConnection([self.greeter.hosted], self.pair.host_outbox, lambda: None)
        self.greeter.take_fd = self.host.take_fd
        self.pair.connect(self.client, self.host)

    def bind(self, descriptor: ServiceDescriptor = GREETER) -> ServiceProxy | None:
        bound: list[ServiceProxy | None] = []
        self.client.bind(descriptor, bound.append)
        self.runner.run_until_idle()
        (proxy,) = bound
        return proxy

    def call(self, name: str, args: bytes = b"", fd: int = -1) -> Replies:
        replies = self.start(name, args, fd)
        self.runner.run_until_idle()
        return replies

    def start(self, name: str, args: bytes = b"", fd: int = -1) -> Replies:
        proxy = self.bind()
        assert proxy is not None
        replies: Replies = []

        def on_reply(reply: Raw | None, has_more: bool) -> None:
            replies.append((None if reply is None else reply.encode(), has_more))

        proxy.invoke(name, Raw(args), on_reply, fd)
        return replies


@pytest.fixture
def link() -> Link:
    return Link()


class TestBindService:
    def test_methods_of_a_bound_service_are_found_by_name(self, link: Link) -> None:
        reordered = ServiceDescriptor(
            "Greeter", (Method("Newer", Raw, Raw), Method("SayHello", Raw, Raw))
        )
        proxy = link.bind(reordered)
        assert proxy is not None
        assert proxy.service_id == 1
        assert proxy.method_id("SayHello") == 1
        assert proxy.method_id("Newer") == 0

    def test_unknown_service_is_bound_as_none(self, link: Link) -> None:
        assert link.bind(ServiceDescriptor("Nobody", ())) is None

    def test_bind_gets_none_if_the_connection_ends_before_the_reply(self, link: Link) -> None:
        bound: list[ServiceProxy | None] = []
        link.client.bind(GREETER, bound.append)
        link.pair.disconnect()
        link.runner.run_until_idle()
        assert bound == [None]

    def test_bind_after_disconnection_gets_none(self, link: Link) -> None:
        link.pair.disconnect()
        assert link.bind() is None


class TestInvokeMethod:
    def test_reply_is_delivered_to_its_callback(self, link: Link) -> None:
        assert link.call("SayHello", b"you") == [(b"hello you", False)]

    def test_streamed_replies_arrive_in_order(self, link: Link) -> None:
        assert link.call("CountTo", b"3") == [(b"1", True), (b"2", True), (b"3", False)]

    def test_request_without_callback_requests_no_reply(self, link: Link) -> None:
        proxy = link.bind()
        assert proxy is not None
        link.pair.host_outbox.sent.clear()
        assert proxy.invoke("SayHello", Raw(b"you"))
        link.runner.run_until_idle()
        assert link.greeter.calls == [b"you"]
        assert link.pair.host_outbox.sent == []
        call = link.pair.client_outbox.sent[-1].msg_invoke_method
        assert call is not None
        assert call.drop_reply

    def test_callback_of_a_rejected_request_gets_none(self, link: Link) -> None:
        assert link.call("Refuse") == [(None, False)]

    def test_method_unknown_to_the_host_is_rejected(self, link: Link) -> None:
        newer = ServiceDescriptor("Greeter", (Method("Newer", Raw, Raw),))
        proxy = link.bind(newer)
        assert proxy is not None
        replies: list[Raw | None] = []
        sent = len(link.pair.client_outbox.sent)
        assert not proxy.invoke("Newer", Raw(), lambda reply, _more: replies.append(reply))
        assert not proxy.invoke("Newer", Raw())
        assert replies == [None]
        assert len(link.pair.client_outbox.sent) == sent

    def test_disconnection_rejects_all_pending_requests(self, link: Link) -> None:
        replies = link.start("Later")
        link.runner.run_until_idle()
        assert replies == []
        link.pair.disconnect()
        assert replies == [(None, False)]
        link.client.close()
        assert len(replies) == 1

    def test_request_refused_by_the_outbox_is_rejected(self, link: Link) -> None:
        proxy = link.bind()
        assert proxy is not None
        link.pair.client_outbox.accepting = False
        replies: list[Raw | None] = []
        assert not proxy.invoke("Later", Raw(), lambda reply, _more: replies.append(reply))
        assert replies == [None]

    @pytest.mark.parametrize(
        ("size", "fits"), [(MAX_ARGS_BYTES, True), (MAX_ARGS_BYTES + 1, False)]
    )
    def test_request_larger_than_a_frame_is_an_error(
        self, link: Link, size: int, fits: bool
    ) -> None:
        proxy = link.bind()
        assert proxy is not None
        if fits:
            assert proxy.invoke("Later", Raw(bytes(size)))
        else:
            with pytest.raises(LocalProtocolError, match="at most 131020"):
                proxy.invoke("Later", Raw(bytes(size)))

    def test_callback_may_invoke_a_method(self, link: Link) -> None:
        proxy = link.bind()
        assert proxy is not None
        replies: list[bytes] = []

        def second(reply: Raw, _has_more: bool) -> None:
            replies.append(reply.data)

        def first(reply: Raw, _has_more: bool) -> None:
            proxy.invoke("SayHello", reply, second)

        proxy.invoke("SayHello", Raw(b"you"), first)
        link.runner.run_until_idle()
        assert replies == [b"hello hello you"]


class TestUnexpectedReplies:
    def reply(self, link: Link, request_id: int, data: bytes = b"") -> None:
        reply = IPCFrame.InvokeMethodReply(success=True, reply_proto=data)
        frame = IPCFrame(request_id=request_id, msg_invoke_method_reply=reply)
        link.client.receive(frame.encode())

    def test_reply_to_unknown_request_is_ignored(self, link: Link) -> None:
        self.reply(link, 77)
        bound = IPCFrame.BindServiceReply(success=True, service_id=1)
        link.client.receive(IPCFrame(request_id=77, msg_bind_service_reply=bound).encode())
        link.client.receive(b"\xff")
        link.client.receive(b"")

    def test_second_reply_to_a_request_is_ignored(self, link: Link) -> None:
        replies = link.call("SayHello", b"you")
        self.reply(link, 2, b"again")
        assert replies == [(b"hello you", False)]

    def test_undecodable_reply_rejects_its_request(self, link: Link) -> None:
        strict = ServiceDescriptor("Greeter", (Method("Later", Raw, SyncRequest),))
        proxy = link.bind(strict)
        assert proxy is not None
        replies: list[SyncRequest | None] = []
        proxy.invoke("Later", Raw(), lambda reply, _more: replies.append(reply))
        self.reply(link, 2, b"\xff")
        self.reply(link, 2, b"")
        assert replies == [None]

    def test_error_reply_rejects_its_request(self, link: Link) -> None:
        replies = link.start("Later")
        error = IPCFrame.RequestError(error="unknown request")
        link.client.receive(IPCFrame(request_id=2, msg_request_error=error).encode())
        assert replies == [(None, False)]


class TestDescriptorTransfer:
    def test_descriptor_is_sent_with_its_request(self, link: Link) -> None:
        read_fd, write_fd = os.pipe()
        os.write(write_fd, b"through a pipe")
        replies = link.start("ReadFd", fd=read_fd)
        os.close(read_fd)
        link.runner.run_until_idle()
        assert replies == [(b"through a pipe", False)]
        os.close(write_fd)

    def test_received_descriptor_is_returned_once(self, link: Link) -> None:
        read_fd, write_fd = os.pipe()
        link.greeter.fd_to_give = read_fd
        os.write(write_fd, b"through a pipe")
        assert link.call("GiveFd") == [(b"take", False)]
        fd = link.client.take_fd()
        assert os.read(fd, 100) == b"through a pipe"
        assert link.client.take_fd() == -1
        for end in (fd, read_fd, write_fd):
            os.close(end)
