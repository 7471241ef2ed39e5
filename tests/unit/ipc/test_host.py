"""The host's protocol, frame by frame (cases of Perfetto's host_impl tests)."""

from __future__ import annotations

import os

import pytest

from stretto.ipc.host import HostConnection
from stretto.ipc.service import Raw
from stretto.protos.ipc import IPCFrame
from stretto.testing.connection_pair import MemoryOutbox
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.descriptors import expect_new_descriptors, open_descriptors
from tests.support.greeter import GREETER, Greeter


class Host:
    """A host connection whose client is the test."""

    def __init__(self) -> None:
        self.greeter = Greeter()
        self.outbox = MemoryOutbox(FakeTaskRunner())
        self.refused = 0
        self.malformed: list[str] = []
        self.connection = HostConnection(
            [self.greeter.hosted],
            self.outbox,
            self._on_refused,
            on_malformed=self.malformed.append,
        )
        self.greeter.take_fd = self.connection.take_fd

    def _on_refused(self) -> None:
        self.refused += 1

    def exchange(self, frame: IPCFrame) -> list[IPCFrame]:
        self.outbox.sent.clear()
        self.connection.receive(frame.encode())
        return list(self.outbox.sent)

    def invoke(
        self, method: str | int, args: bytes = b"", *, service_id: int = 1, drop_reply: bool = False
    ) -> list[IPCFrame.InvokeMethodReply | None]:
        call = IPCFrame.InvokeMethod(
            service_id=service_id,
            method_id=method if isinstance(method, int) else GREETER.method_id(method),
            args_proto=args,
            drop_reply=drop_reply,
        )
        replies = self.exchange(IPCFrame(request_id=9, msg_invoke_method=call))
        assert all(reply.request_id == 9 for reply in replies)
        return [reply.msg_invoke_method_reply for reply in replies]


@pytest.fixture
def host() -> Host:
    return Host()


def ok(data: bytes, *, has_more: bool = False) -> IPCFrame.InvokeMethodReply:
    return IPCFrame.InvokeMethodReply(success=True, has_more=has_more, reply_proto=data)


REJECTED = IPCFrame.InvokeMethodReply(success=False)


class TestBindService:
    def test_known_service_is_bound(self, host: Host) -> None:
        bind = IPCFrame.BindService(service_name="Greeter")
        (reply,) = host.exchange(IPCFrame(request_id=4, msg_bind_service=bind))
        bound = reply.msg_bind_service_reply
        assert reply.request_id == 4
        assert bound is not None
        assert (bound.success, bound.service_id) == (True, 1)
        assert [(method.id, method.name) for method in bound.methods][:3] == [
            (1, "SayHello"),
            (2, "CountTo"),
            (3, "Later"),
        ]

    @pytest.mark.parametrize("name", ["", "greeter", "x.Greeter"])
    def test_unknown_service_is_refused(self, host: Host, name: str) -> None:
        bind = IPCFrame.BindService(service_name=name)
        (reply,) = host.exchange(IPCFrame(request_id=4, msg_bind_service=bind))
        assert reply.msg_bind_service_reply == IPCFrame.BindServiceReply()


class TestInvokeMethod:
    def test_reply_carries_the_request_id(self, host: Host) -> None:
        assert host.invoke("SayHello", b"you") == [ok(b"hello you")]

    def test_request_with_drop_reply_gets_no_reply(self, host: Host) -> None:
        assert host.invoke("SayHello", b"you", drop_reply=True) == []
        assert host.greeter.calls == [b"you"]

    def test_replies_may_be_streamed(self, host: Host) -> None:
        assert host.invoke("CountTo", b"3") == [
            ok(b"1", has_more=True),
            ok(b"2", has_more=True),
            ok(b"3"),
        ]

    def test_handler_may_reply_later(self, host: Host) -> None:
        assert host.invoke("Later") == []
        (deferred,) = host.greeter.pending
        assert deferred.pending
        deferred.resolve(Raw(b"at last"))
        assert not deferred.pending
        assert [frame.msg_invoke_method_reply for frame in host.outbox.sent] == [ok(b"at last")]
        deferred.resolve(Raw(b"twice"))
        deferred.reject()
        assert len(host.outbox.sent) == 1

    @pytest.mark.parametrize(
        ("service_id", "method"), [(0, 1), (2, 1), (1, 0), (1, 10), (1, 2**31)]
    )
    def test_unknown_method_is_rejected(self, host: Host, service_id: int, method: int) -> None:
        assert host.invoke(method, service_id=service_id) == [REJECTED]
        assert host.invoke(method, service_id=service_id, drop_reply=True) == []

    def test_method_without_a_handler_is_rejected(self, host: Host) -> None:
        assert host.invoke("NotImplemented") == [REJECTED]

    def test_request_that_its_handler_refuses_is_rejected(self, host: Host) -> None:
        assert host.invoke("Refuse") == [REJECTED]
        assert host.invoke("Refuse", drop_reply=True) == []

    def test_undecodable_arguments_are_rejected(self, host: Host) -> None:
        assert host.invoke("Strict", b"\xff") == [REJECTED]
        assert host.greeter.calls == []

    def test_unknown_fields_of_a_newer_client_are_ignored(self, host: Host) -> None:
        assert host.invoke("Strict", b"\xc2\x3e\x01x") == [ok(b"")]
        assert host.greeter.calls == [b"strict"]


class TestUnexpectedFrames:
    @pytest.mark.parametrize(
        "frame",
        [
            IPCFrame(request_id=7),
            IPCFrame(request_id=7, msg_bind_service_reply=IPCFrame.BindServiceReply()),
            IPCFrame(request_id=7, msg_invoke_method_reply=IPCFrame.InvokeMethodReply()),
        ],
        ids=["empty", "bind reply", "invoke reply"],
    )
    def test_unknown_kind_of_frame_gets_an_error(self, host: Host, frame: IPCFrame) -> None:
        (reply,) = host.exchange(frame)
        error = IPCFrame.RequestError(error="unknown request")
        assert reply == IPCFrame(request_id=7, msg_request_error=error)

    def test_peer_identity_is_ignored_on_a_unix_socket(self, host: Host) -> None:
        identity = IPCFrame.SetPeerIdentity(pid=1, uid=0)
        assert host.exchange(IPCFrame(set_peer_identity=identity)) == []

    def test_undecodable_frame_is_ignored(self, host: Host) -> None:
        host.connection.receive(b"\xff\xff\xff")
        assert host.outbox.sent == []


class TestReceivedDescriptors:
    def test_received_descriptor_is_given_to_the_handler(self, host: Host) -> None:
        read_fd, write_fd = os.pipe()
        os.write(write_fd, b"through a pipe")
        host.connection.park_fd(read_fd)
        assert host.invoke("ReadFd") == [ok(b"through a pipe")]
        assert host.invoke("ReadFd") == [ok(b"none")]
        os.close(write_fd)

    def test_last_descriptor_is_kept_and_earlier_descriptors_are_closed(self, host: Host) -> None:
        before = open_descriptors()
        for _ in range(3):
            host.connection.park_fd(os.open(os.devnull, os.O_RDONLY))
            host.connection.park_fd(-1)
        expect_new_descriptors(before, 1)
        host.connection.close()
        expect_new_descriptors(before, 0)


class TestReportsOfMalformedInput:
    def test_undecodable_requests_are_reported_once_per_method(self, host: Host) -> None:
        for _ in range(3):
            assert host.invoke("Strict", b"\xff") == [REJECTED]
        (line,) = host.malformed
        assert line.startswith("Strict: ")

    def test_undecodable_requests_that_expect_no_reply_are_reported(self, host: Host) -> None:
        assert host.invoke("Strict", b"\xff", drop_reply=True) == []
        assert len(host.malformed) == 1

    def test_undecodable_frames_are_reported_once(self, host: Host) -> None:
        for _ in range(3):
            host.connection.receive(b"\xff\xff")
        assert host.malformed == ["frame: 2 bytes that are no message"]

    def test_requests_refused_by_the_service_are_not_reported(self, host: Host) -> None:
        assert host.invoke("Refuse") == [REJECTED]
        assert host.malformed == []


class TestExceptionsInHandlers:
    def test_request_whose_handler_raises_is_rejected(self, host: Host) -> None:
        with pytest.raises(ZeroDivisionError):
            host.invoke("Fail")
        assert [frame.msg_invoke_method_reply for frame in host.outbox.sent] == [REJECTED]


class TestUnsendableReplies:
    def test_full_outbox_ends_the_connection(self, host: Host) -> None:
        host.outbox.accepting = False
        host.invoke("SayHello")
        assert host.refused == 1

    def test_reply_larger_than_a_frame_ends_the_connection(self, host: Host) -> None:
        assert host.invoke("SayHello", bytes(131_070)) == []
        assert host.refused == 1
