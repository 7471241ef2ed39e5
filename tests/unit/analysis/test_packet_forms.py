"""Traces in text format and JSON, read and written packet by packet."""

from __future__ import annotations

import io
import time
import zlib
from collections import Counter

import pytest

from stretto.analysis import json_packets, text_packets
from stretto.analysis.packet_stream import PacketStream
from stretto.base.errors import ConfigError
from stretto.base.sync_marker import SYNC_MARKER
from stretto.protos.trace import TracePacket, TrackEvent
from stretto.protozero.text_format import TextFormatError
from stretto.protozero.wire import bytes_field
from tests.support.peak_memory import peak_memory

PACKETS = [
    TracePacket(timestamp=5),
    TracePacket(track_event=TrackEvent(type=3, name='{"}\\ # é', categories=["}", "{"])),
    TracePacket(),
]


def from_text(text: str) -> list[TracePacket]:
    return list(text_packets.parse_packets(io.StringIO(text), "in.txt"))


def from_json(text: str) -> list[TracePacket]:
    return list(json_packets.parse_packets(io.StringIO(text)))


def encoded(packets: list[TracePacket]) -> bytes:
    return b"".join(bytes_field(1, packet.encode()) for packet in packets)


class TestTextFormat:
    def test_packets_are_unchanged_after_writing_and_reading_text(self) -> None:
        assert from_text("".join(map(text_packets.packet_text, PACKETS))) == PACKETS

    def test_text_may_have_any_layout(self) -> None:
        text = """
          # a { comment
          packet: { timestamp: 1 } packet{timestamp:2};  # }
          packet
          {
            track_event { name: "}\\"{" # }
            } }; packet {}"""
        first, second, third, fourth = from_text(text)
        assert (first.timestamp, second.timestamp) == (1, 2)
        assert third.track_event is not None
        assert third.track_event.name == '}"{'
        assert fourth == TracePacket()

    def test_fields_known_only_by_number_are_ignored_and_counted(self) -> None:
        text = """packet {
            124: "\\022\\"}{"
            timestamp: 5
            track_event {
              99: 0x05
              3: -1.5
            }
        }"""
        unknown: Counter[str] = Counter()
        (packet,) = text_packets.parse_packets(io.StringIO(text), "in.txt", unknown)
        assert packet == TracePacket(timestamp=5, track_event=TrackEvent())
        assert sum(unknown.values()) == 3

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("packets {}", "in.txt:1: a trace is a list of"),
            ("{}", "in.txt:1: a trace is a list of"),
            ("\n\nduration_ms: 5 packet {}", "in.txt:3: a trace is a list of"),
            ("packet {\n timestamp: 1", "in.txt:1: a packet that doesn't end"),
            ("packet {} }", "a packet that doesn't end"),
            ("packet {}\n\npacket {\n\n  timestamp: yes }", "in.txt:5:"),
            ("packet {} # fine\npacket", "a packet that doesn't end"),
        ],
    )
    def test_error_in_text_names_the_line_and_the_reason(self, text: str, message: str) -> None:
        with pytest.raises(TextFormatError) as caught:
            from_text(text)
        assert message in str(caught.value)

    def test_packet_above_the_maximum_length_is_an_error(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(text_packets, "_MAX_PACKET_CHARS", 1000)
        lines = ("packet {\n" if at == 0 else "timestamp: 5\n" for at in range(10**9))
        with pytest.raises(TextFormatError, match="doesn't end"):
            list(text_packets.parse_packets(lines, "in.txt"))


class TestJsonFormat:
    def test_packets_are_unchanged_after_writing_and_reading_json(self) -> None:
        parts: list[str] = []
        assert json_packets.write_packets(iter(PACKETS), parts.append) == 3
        assert from_json("".join(parts)) == PACKETS
        parts.clear()
        assert json_packets.write_packets(iter(()), parts.append) == 0
        assert from_json("".join(parts)) == []

    def test_reads_of_any_size_find_the_same_packets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        parts: list[str] = []
        json_packets.write_packets(iter(PACKETS), parts.append)
        text = "".join(parts)
        for size in range(len(json_packets.START), 60):
            monkeypatch.setattr(json_packets, "_READ_CHARS", size)
            assert from_json(text) == PACKETS

    def test_json_may_have_any_layout(self) -> None:
        text = ' {\n"packet" : [ {"timestamp" : "5" } ,\n\n{ } , {"timestamp":6}\n]\n}\n'
        assert [packet.timestamp for packet in from_json(text)] == [5, 0, 6]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "no JSON"),
            ("{", "no JSON"),
            ('{"a":' * 100_000, "this is no trace"),
            ('{"a":' + "9" * 5000 + "}", "this is no trace"),
            ('{"buffers": []}', "this is no trace"),
            ('{"traceEvents": []}', "Chrome's JSON"),
            ("[]", "Chrome's JSON"),
            ('{"packet":[', "after 0 packets"),
            ('{"packet":[{}, 5]}', "after 1 packets"),
            ('{"packet":[{}]', "after 1 packets"),
            ('{"packet":[{}]} x', "after 1 packets"),
            ('{"packet":[{"timestamp":"5"', "within a packet"),
            ('{"packet":[{"timestamp":"5', "within a packet"),
            ('{"packet":[{},{"nothing":5}]}', "packet 1: "),
        ],
    )
    def test_error_in_json_names_the_reason(self, text: str, message: str) -> None:
        with pytest.raises(ConfigError) as caught:
            from_json(text)
        assert message in str(caught.value)

    def test_json_packet_above_the_maximum_length_is_an_error(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(json_packets, "_MAX_PACKET_CHARS", 1 << 20)
        start = time.monotonic()
        for endless in ('{"a":"' + "x" * (8 << 20), "{" + '"a":{' * (1 << 20), " " * (8 << 20)):
            with pytest.raises(ConfigError):
                from_json('{"packet":[' + endless)
        assert time.monotonic() - start < 60


def test_compressed_packets_are_unpacked_once() -> None:
    data = encoded(PACKETS)
    packed = encoded([TracePacket(compressed_packets=zlib.compress(data))])
    stream = PacketStream(io.BytesIO(packed))
    assert list(stream) == PACKETS
    assert stream.damaged == 0
    twice = encoded([TracePacket(compressed_packets=zlib.compress(packed))])
    (inner,) = PacketStream(io.BytesIO(twice))
    assert inner.has("compressed_packets")


def test_damaged_packets_are_counted() -> None:
    stream = PacketStream(io.BytesIO(encoded(PACKETS) + bytes_field(1, b"\x08") + b"\x0a\x50x"))
    assert list(stream) == PACKETS
    assert stream.damaged == 2


def test_reading_continues_after_the_next_sync_marker() -> None:
    marked = encoded([TracePacket(synchronization_marker=SYNC_MARKER)])
    stream = PacketStream(io.BytesIO(b"\x0a\xff\xff\xff\xff\x7f" + marked + encoded(PACKETS)))
    assert list(stream) == PACKETS
    assert stream.damaged == 1


@pytest.mark.thorough
@pytest.mark.once
class TestLargePackets:
    """Packets larger than one read of the file need only bounded memory per character."""

    SIZE = 21_000_000

    @pytest.mark.parametrize("fill", ["x", '"}\\\n', "\\"])
    def test_large_packets_are_unchanged_after_writing_and_reading(self, fill: str) -> None:
        name = fill * (self.SIZE // len(fill))
        packets = [PACKETS[0], TracePacket(track_event=TrackEvent(name=name)), PACKETS[1]]
        written: list[str] = []
        json_packets.write_packets(packets, written.append)
        start = time.monotonic()
        for text, read in (
            ("".join(written), from_json),
            ("".join(map(text_packets.packet_text, packets)), from_text),
        ):
            with peak_memory() as peak:
                same = read(text)
            assert peak.bytes < 24 * len(text)
            assert same == packets
        assert time.monotonic() - start < 120

    def test_large_bytes_field_is_unchanged_after_writing_and_reading_text(self) -> None:
        packet = TracePacket(compressed_packets=b"\0" * 17_000_000)
        text = text_packets.packet_text(packet)
        assert len(text) > 4 * 17_000_000
        assert from_text(text) == [packet]

    def test_many_small_packets_are_unchanged_after_writing_and_reading_json(self) -> None:
        packets = [TracePacket(timestamp=1)] * 50_000
        written: list[str] = []
        json_packets.write_packets(packets, written.append)
        assert from_json("".join(written)) == packets

    @pytest.mark.parametrize("blanks", [" " * 1_000_000, " ;" * 500_000])
    def test_many_blanks_are_skipped_in_linear_time(self, blanks: str) -> None:
        start = time.monotonic()
        for text in (blanks + "x {", f"{blanks}x\n", f"packet {{}}{blanks}x"):
            with pytest.raises(TextFormatError):
                from_text(text)
        assert time.monotonic() - start < 60
