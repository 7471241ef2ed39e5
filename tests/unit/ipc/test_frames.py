"""Splitting bytes into frames (cases of Perfetto's buffered_frame_deserializer tests)."""

from __future__ import annotations

import pytest

from stretto.base.errors import LocalProtocolError, RemoteProtocolError
from stretto.ipc.frames import (
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    MAX_PAYLOAD_BYTES,
    FrameReader,
    decode_payload,
    encode_frame,
    encode_reply,
)
from stretto.protos.ipc import IPCFrame


def frame(number: int, size: int = 0) -> IPCFrame:
    return IPCFrame(request_id=number, data_for_testing=[bytes(size)])


def feed(reader: FrameReader, data: bytes) -> None:
    reader.space()[: len(data)] = data
    reader.received(len(data))


def take_all(reader: FrameReader) -> list[IPCFrame | None]:
    frames = []
    while (payload := reader.next_payload()) is not None:
        frames.append(decode_payload(payload))
    return frames


class TestEncodeFrame:
    def test_frame_has_the_documented_bytes(self) -> None:
        bind = IPCFrame.BindService(service_name="P")
        encoded = encode_frame(IPCFrame(request_id=1, msg_bind_service=bind))
        assert encoded == b"\x07\0\0\0" + b"\x10\x01" + b"\x1a\x03" + b"\x0a\x01P"

    def test_largest_frame_is_accepted_and_a_larger_frame_is_refused(self) -> None:
        overhead = len(encode_frame(frame(1, 100_000))) - 100_000
        assert len(encode_frame(frame(1, MAX_FRAME_BYTES - overhead))) == MAX_FRAME_BYTES
        with pytest.raises(LocalProtocolError, match="at most 131068"):
            encode_frame(frame(1, MAX_FRAME_BYTES - overhead + 1))

    @pytest.mark.parametrize("success", [True, False])
    @pytest.mark.parametrize("has_more", [True, False])
    def test_reply_encoder_writes_the_same_bytes_as_the_generated_encoder(
        self, success: bool, has_more: bool
    ) -> None:
        data = b"reply" if success else b""
        message = IPCFrame.InvokeMethodReply(success=success)
        if success:
            message.has_more, message.reply_proto = has_more, data
        frame = IPCFrame(request_id=300, msg_invoke_method_reply=message)
        assert encode_reply(300, data, success=success, has_more=has_more) == encode_frame(frame)


class TestFrameReader:
    def test_whole_frames_are_read(self) -> None:
        reader = FrameReader()
        for number in range(1, 6):
            feed(reader, encode_frame(frame(number, number * 100)))
            assert take_all(reader) == [frame(number, number * 100)]

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
    def test_fragmented_frame_is_joined(self, size: int) -> None:
        frames = [frame(number, number * 37 % 60) for number in range(1, 20)]
        stream = b"".join(map(encode_frame, frames))
        reader, seen = FrameReader(), list[IPCFrame | None]()
        for start in range(0, len(stream), size):
            feed(reader, stream[start : start + size])
            seen += take_all(reader)
        assert seen == frames

    def test_frame_split_at_any_position_is_joined(self) -> None:
        frames = [frame(1, 3), frame(2, 0), frame(3, 5)]
        stream = b"".join(map(encode_frame, frames))
        for position in range(len(stream) + 1):
            reader = FrameReader()
            feed(reader, stream[:position])
            seen = take_all(reader)
            feed(reader, stream[position:])
            assert seen + take_all(reader) == frames

    def test_receive_of_no_bytes_yields_no_frame(self) -> None:
        reader = FrameReader()
        reader.received(0)
        assert reader.next_payload() is None
        assert not reader.pending()

    def test_empty_payload_is_skipped(self) -> None:
        reader = FrameReader()
        feed(reader, bytes(4) + encode_frame(frame(1)) + bytes(8) + encode_frame(frame(2)))
        assert take_all(reader) == [frame(1), frame(2)]

    def test_several_frames_in_one_receive_are_read(self) -> None:
        reader = FrameReader()
        feed(reader, b"".join(encode_frame(frame(number)) for number in range(1, 8)))
        assert take_all(reader) == [frame(number) for number in range(1, 8)]

    @pytest.mark.parametrize("length", [MAX_PAYLOAD_BYTES + 1, 2**31, 2**32 - 1])
    def test_very_large_frames_are_rejected(self, length: int) -> None:
        reader = FrameReader()
        feed(reader, encode_frame(frame(1)) + length.to_bytes(4, "little"))
        assert reader.next_payload() is not None
        with pytest.raises(RemoteProtocolError, match="doesn't speak"):
            reader.next_payload()

    def test_frame_after_an_unparsable_frame_is_read(self) -> None:
        reader = FrameReader()
        garbage = b"\x05\0\0\0" + b"\xff" * 5
        feed(reader, encode_frame(frame(1)) + garbage + encode_frame(frame(2)))
        assert take_all(reader) == [frame(1), None, frame(2)]

    def test_one_frame_may_fill_the_whole_buffer(self) -> None:
        reader = FrameReader()
        payload = bytes(range(256)) * 511 + bytes(252)
        assert len(payload) == MAX_PAYLOAD_BYTES
        feed(reader, encode_frame(frame(1)))
        feed(reader, len(payload).to_bytes(4, "little"))
        assert take_all(reader) == [frame(1)]
        position = 0
        while position < len(payload):
            space = reader.space()
            assert len(space) == MAX_FRAME_BYTES - HEADER_BYTES - position
            feed(reader, payload[position : position + 60_000])
            position += 60_000
        assert reader.next_payload() == payload
        assert len(reader.space()) == MAX_FRAME_BYTES

    def test_closed_reader_has_no_frames(self) -> None:
        reader = FrameReader()
        feed(reader, encode_frame(frame(1)))
        reader.close()
        assert reader.next_payload() is None
        assert not reader.pending()
        assert not reader.space()

    def test_pending_bytes_may_be_consumed_without_reading_frames(self) -> None:
        reader = FrameReader()
        first, second = encode_frame(frame(1)), encode_frame(frame(2))
        feed(reader, first + second)
        assert reader.pending() == first + second
        reader.consume(len(first))
        assert reader.pending() == second
        assert take_all(reader) == [frame(2)]
