"""IPC frames are read in any fragmentation, and no bytes from a peer cause an exception."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.base.errors import RemoteProtocolError
from stretto.ipc.client import Client
from stretto.ipc.frames import MAX_FRAME_BYTES, FrameReader, encode_frame
from stretto.ipc.host import HostConnection
from stretto.protos.ipc import IPCFrame
from stretto.testing.connection_pair import MemoryOutbox
from stretto.testing.fake_task_runner import FakeTaskRunner
from tests.support.examples import examples
from tests.support.greeter import GREETER, Greeter

payloads = st.lists(st.binary(max_size=40), max_size=12)
cuts = st.lists(st.integers(1, 30), min_size=1, max_size=20)

calls = st.builds(
    IPCFrame.InvokeMethod,
    service_id=st.integers(0, 2),
    method_id=st.integers(0, 9),
    args_proto=st.binary(max_size=8),
    drop_reply=st.booleans(),
)
replies = st.builds(
    IPCFrame.InvokeMethodReply,
    success=st.booleans(),
    has_more=st.booleans(),
    reply_proto=st.binary(max_size=8),
)
method_infos = st.builds(
    IPCFrame.BindServiceReply.MethodInfo, id=st.integers(0, 9), name=st.text(max_size=4)
)
bind_replies = st.builds(
    IPCFrame.BindServiceReply,
    success=st.booleans(),
    service_id=st.integers(0, 3),
    methods=st.lists(method_infos, max_size=3),
)
request_ids = st.integers(0, 4)
frames = st.one_of(
    st.builds(IPCFrame, request_id=request_ids, msg_invoke_method=calls),
    st.builds(IPCFrame, request_id=request_ids, msg_invoke_method_reply=replies),
    st.builds(IPCFrame, request_id=request_ids, msg_bind_service_reply=bind_replies),
    st.builds(
        IPCFrame,
        request_id=request_ids,
        msg_bind_service=st.builds(
            IPCFrame.BindService, service_name=st.sampled_from(["Greeter", "", "x"])
        ),
    ),
    st.builds(
        IPCFrame,
        request_id=request_ids,
        msg_request_error=st.builds(IPCFrame.RequestError, error=st.text(max_size=4)),
    ),
)
messages = st.one_of(st.binary(max_size=60), frames.map(IPCFrame.encode))


def feed(reader: FrameReader, stream: bytes, sizes: list[int]) -> list[bytes]:
    taken: list[bytes] = []
    position = turn = 0
    while position < len(stream):
        size = min(sizes[turn % len(sizes)], len(stream) - position, len(reader.space()))
        reader.space()[:size] = stream[position : position + size]
        reader.received(size)
        while (payload := reader.next_payload()) is not None:
            taken.append(payload)
        position += size
        turn += 1
    return taken


@given(payloads, cuts)
def test_frame_reader_returns_the_same_payloads_for_any_fragmentation(
    parts: list[bytes], sizes: list[int]
) -> None:
    stream = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    assert feed(FrameReader(), stream, sizes) == [part for part in parts if part]


@given(st.binary(max_size=400), cuts)
def test_arbitrary_bytes_are_split_into_frames_or_refused(stream: bytes, sizes: list[int]) -> None:
    reader = FrameReader()
    try:
        taken = feed(reader, stream, sizes)
    except RemoteProtocolError:
        return
    # Payloads and unread bytes together are at most as long as the received bytes.
    assert sum(len(payload) + 4 for payload in taken) + len(reader.pending()) <= len(stream)
    assert len(reader.space()) + len(reader.pending()) == MAX_FRAME_BYTES


@settings(max_examples=examples(300))
@given(st.lists(messages, max_size=10))
def test_host_answers_each_request_at_most_once(payloads: list[bytes]) -> None:
    greeter = Greeter()
    outbox = MemoryOutbox(FakeTaskRunner())
    # Not tested: `CountTo` streams any number of replies; `Fail` raises an exception.
    for name in ("CountTo", "Fail"):
        del greeter.hosted.handlers[name]  # type: ignore[attr-defined]
    host = HostConnection([greeter.hosted], outbox, lambda: None)
    for payload in payloads:
        before = len(outbox.sent)
        host.receive(payload)
        assert len(outbox.sent) - before <= 1
    host.close()


@settings(max_examples=examples(300))
@given(st.lists(messages, max_size=10))
def test_client_completes_each_callback_once(payloads: list[bytes]) -> None:
    outbox = MemoryOutbox(FakeTaskRunner())
    client = Client(outbox)
    ends: list[object] = []
    client.bind(GREETER, ends.append)
    for payload in payloads:
        client.receive(payload)
    client.close()
    client.close()
    assert len(ends) == 1


@given(frames)
def test_frame_reader_returns_the_frame_that_was_encoded(frame: IPCFrame) -> None:
    encoded = encode_frame(frame)
    assert feed(FrameReader(), encoded, [len(encoded)]) == (
        [frame.encode()] if frame.encode() else []
    )
