"""Single frames: what comes out, and what is refused."""

from __future__ import annotations

import pytest

from stretto.viewer.websocket_frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    TEXT,
    FrameReader,
    Piece,
    WebSocketError,
    apply_mask,
    encode_frame,
)
from tests.support.websocket_client import MASK, client_frame


def pieces(reader: FrameReader, data: bytes) -> list[Piece]:
    reader.receive(data)
    taken = []
    while (piece := reader.next_piece()) is not None:
        taken.append(piece)
    return taken


def refused(data: bytes) -> int:
    with pytest.raises(WebSocketError) as caught:
        pieces(FrameReader(), data)
    return caught.value.code


class TestEncoding:
    def test_examples_of_the_rfc(self) -> None:
        # RFC 6455, section 5.7
        assert encode_frame(TEXT, b"Hello") == bytes.fromhex("810548656c6c6f")
        assert client_frame(TEXT, b"Hello") == bytes.fromhex("818537fa213d7f9f4d5158")
        assert encode_frame(TEXT, b"Hel", final=False) == bytes.fromhex("010348656c")
        assert encode_frame(CONTINUATION, b"lo") == bytes.fromhex("80026c6f")
        assert encode_frame(BINARY, bytes(256))[:4] == bytes.fromhex("827e0100")
        assert encode_frame(BINARY, bytes(65536))[:10] == bytes.fromhex("827f0000000000010000")

    @pytest.mark.parametrize("size", [0, 125, 126, 127, 65535, 65536])
    def test_lengths_are_in_their_shortest_form_and_read_back(self, size: int) -> None:
        payload = bytes(i % 251 for i in range(size))
        (piece,) = pieces(FrameReader(), client_frame(BINARY, payload))
        assert piece.payload == payload
        assert (piece.announced, piece.starts, piece.ends, piece.final) == (size, True, True, True)

    def test_a_mask_undoes_itself(self) -> None:
        assert apply_mask(apply_mask(b"seven b", MASK), MASK) == b"seven b"


class TestPieces:
    def test_the_mask_goes_on_where_a_piece_ended(self) -> None:
        reader = FrameReader()
        frame = client_frame(BINARY, b"0123456789")
        taken = [piece for i in range(len(frame)) for piece in pieces(reader, frame[i : i + 1])]
        assert b"".join(piece.payload for piece in taken) == b"0123456789"
        assert [piece.starts for piece in taken].count(True) == 1
        assert [piece.ends for piece in taken] == [False] * (len(taken) - 1) + [True]

    def test_a_control_frame_comes_whole(self) -> None:
        reader = FrameReader()
        frame = client_frame(PING, b"ping")
        assert pieces(reader, frame[:-1]) == []
        (piece,) = pieces(reader, frame[-1:])
        assert (piece.opcode, piece.payload) == (PING, b"ping")

    def test_a_huge_frame_is_announced_and_nothing_of_it_kept(self) -> None:
        reader = FrameReader()
        header = b"\x82\xff" + ((1 << 63) - 1).to_bytes(8) + MASK
        (piece,) = pieces(reader, header)
        assert (piece.announced, piece.payload, piece.ends) == ((1 << 63) - 1, b"", False)
        assert len(pieces(reader, bytes(1000))[0].payload) == 1000
        assert reader.pending_bytes == 0


class TestRefused:
    @pytest.mark.parametrize("bit", [0x40, 0x20, 0x10])
    def test_reserved_bits(self, bit: int) -> None:
        assert refused(bytes((0x82 | bit, 0x80)) + MASK) == 1002

    @pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 0xB, 0xC, 0xD, 0xE, 0xF])
    def test_unknown_opcodes(self, opcode: int) -> None:
        assert refused(bytes((0x80 | opcode, 0x80))) == 1002

    def test_frames_without_a_mask(self) -> None:
        assert refused(encode_frame(TEXT, b"Hello")) == 1002

    def test_fragmented_control_frames(self) -> None:
        assert refused(client_frame(PING, b"x", final=False)) == 1002

    def test_long_control_frames(self) -> None:
        assert refused(client_frame(CLOSE, bytes(126))) == 1002

    @pytest.mark.parametrize(
        "length", [b"\xfe\x00\x7d", b"\xff" + (65535).to_bytes(8), b"\xff" + (1 << 63).to_bytes(8)]
    )
    def test_lengths_in_another_form(self, length: bytes) -> None:
        assert refused(b"\x82" + length + MASK) == 1002

    def test_what_came_before_comes_out_first(self) -> None:
        reader = FrameReader()
        reader.receive(client_frame(BINARY, b"good") + b"\xff\xff")
        piece = reader.next_piece()
        assert piece is not None
        assert piece.payload == b"good"
        with pytest.raises(WebSocketError):
            reader.next_piece()
