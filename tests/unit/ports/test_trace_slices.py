"""Traces of any sizes are packed into slices and joined again."""

from __future__ import annotations

import pytest

from stretto.base.errors import DecodeError
from stretto.ipc.frames import MAX_FRAME_BYTES
from stretto.ports import trace_slices
from stretto.ports.trace_slices import MAX_REPLY_BYTES, MAX_SLICE_BYTES, SliceJoiner, pack_slices
from stretto.protos.ipc import ReadBuffersResponse
from stretto.protozero.wire import bytes_field

SIZES = [
    [],
    [0],
    [1, 127, 128, 20_000],
    [0] * 30_000,
    [60_000, 60_000, 60_000],
    [MAX_SLICE_BYTES - 1, MAX_SLICE_BYTES, MAX_SLICE_BYTES + 1],
    [5, 1_000_000, 5],
]


def packets_of(sizes: list[int]) -> list[bytes]:
    return [bytes([number % 251]) * size for number, size in enumerate(sizes)]


def trace_of(packets: list[bytes]) -> bytes:
    return b"".join(bytes_field(1, packet) for packet in packets)


def slices_of(replies: list[bytes]) -> list[ReadBuffersResponse.Slice]:
    return [each for reply in replies for each in ReadBuffersResponse.decode(reply).slices]


@pytest.mark.parametrize("sizes", SIZES)
class TestSplitAndJoin:
    def test_joined_packets_equal_the_sent_packets(self, sizes: list[int]) -> None:
        packets = packets_of(sizes)
        replies = list(pack_slices(trace_of(packets)))
        found, begun = [], b""
        for each in slices_of(replies):
            begun += each.data
            if each.last_slice_for_packet:
                found.append(begun)
                begun = b""
        assert found == packets
        assert begun == b""

    def test_joined_trace_equals_the_sent_trace(self, sizes: list[int]) -> None:
        trace = trace_of(packets_of(sizes))
        joiner = SliceJoiner()
        assert b"".join(map(joiner.add, pack_slices(trace))) == trace

    def test_each_reply_fits_into_a_frame(self, sizes: list[int]) -> None:
        for reply in pack_slices(trace_of(packets_of(sizes))):
            slices = ReadBuffersResponse.decode(reply).slices
            assert sum(len(each.data) + 16 for each in slices) <= MAX_REPLY_BYTES
            assert len(reply) < MAX_FRAME_BYTES - 64


def test_small_packets_are_sent_in_one_reply() -> None:
    assert len(list(pack_slices(trace_of([b"x"] * 5000)))) == 1


class TestEncodingsOfOtherServices:
    def test_slice_fields_in_any_order_and_unknown_fields_are_accepted(self) -> None:
        slice_ = b"\x10\x01" + bytes_field(1, b"packet") + b"\x78\x05"
        reply = bytes_field(9, b"?") + bytes_field(2, slice_)
        assert SliceJoiner().add(reply) == b"\x0a\x06packet"

    def test_redundant_length_of_four_bytes_is_accepted(self) -> None:
        slice_ = b"\x0a\x86\x80\x80\x00packet\x10\x01"
        assert SliceJoiner().add(bytes_field(2, slice_)) in (
            b"\x0a\x06packet",
            b"\x0a\x86\x80\x80\x00packet",
        )

    def test_packet_in_slices_of_several_replies_is_joined(self) -> None:
        joiner = SliceJoiner()
        for part in (b"one ", b"", b"two "):
            reply = ReadBuffersResponse(slices=[ReadBuffersResponse.Slice(data=part)])
            assert joiner.add(reply.encode()) == b""
        last = ReadBuffersResponse.Slice(data=b"three", last_slice_for_packet=True)
        whole = ReadBuffersResponse.Slice(data=b"next", last_slice_for_packet=True)
        reply = ReadBuffersResponse(slices=[last, whole])
        assert joiner.add(reply.encode()) == b"\x0a\x0done two three\x0a\x04next"

    @pytest.mark.parametrize("mark", [b"", b"\x10\x00"])
    def test_packets_in_two_slices_are_joined_by_native_code(
        self, monkeypatch: pytest.MonkeyPatch, mark: bytes
    ) -> None:
        """A packet of Perfetto's service has two slices: the producer's bytes and the service's."""

        def refuse(encoded: bytes) -> None:
            raise AssertionError("a slice went through Python")

        monkeypatch.setattr(trace_slices, "_parse", refuse)
        packet = bytes_field(2, bytes_field(1, b"packet ") + mark)
        packet += bytes_field(2, bytes_field(1, b"trusted") + b"\x10\x01")
        assert SliceJoiner().add(packet * 1000) == bytes_field(1, b"packet trusted") * 1000

    def test_empty_slices_of_an_unfinished_packet_are_joined_in_linear_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = []

        class Native:
            def join_slices(self, reply: bytes, start: int) -> tuple[bytes, int]:
                calls.append(start)
                return b"", start

        monkeypatch.setattr(trace_slices, "_native", Native())
        assert SliceJoiner().add(b"\x12\x02\x0a\x00" * 1000) == b""
        assert calls == [0]

    def test_packet_content_that_resembles_a_slice_field_is_unchanged(self) -> None:
        joiner = SliceJoiner()
        slice_ = ReadBuffersResponse.Slice(data=b"\x10\x01")
        assert joiner.add(ReadBuffersResponse(slices=[slice_]).encode()) == b""
        slice_.last_slice_for_packet = True
        trace = joiner.add(ReadBuffersResponse(slices=[slice_]).encode())
        assert trace == b"\x0a\x04\x10\x01\x10\x01"


class TestHostileReplies:
    @pytest.mark.parametrize("reply", [b"\x12\x05ab", b"\x12\x02\x0a\x09", b"\xff", b"\x00\x00"])
    def test_malformed_reply_is_an_error(self, reply: bytes) -> None:
        with pytest.raises(DecodeError):
            SliceJoiner().add(reply)

    def test_packet_above_the_size_limit_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trace_slices, "MAX_PACKET_BYTES", 10)
        joiner = SliceJoiner()
        reply = ReadBuffersResponse(slices=[ReadBuffersResponse.Slice(data=b"12345")]).encode()
        joiner.add(reply)
        joiner.add(reply)
        with pytest.raises(DecodeError, match="more than 10 bytes"):
            joiner.add(reply)
