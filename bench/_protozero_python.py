"""The Python side of bench/protozero.py: compares ours with google.protobuf.

    python bench/_protozero_python.py DESCRIPTOR_SET

It prints {operation: {"ours": ns, "peer": ns}} as JSON, per message, packet or character.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf import json_format as google_json
from google.protobuf import text_format as google_text

from stretto.protozero.json_format import format_json, parse_json
from stretto.protozero.selector import select
from stretto.protozero.table import Table
from stretto.protozero.text_format import format_text, parse_text
from stretto.protozero.tokenizer import Tokenizer

MESSAGES = 20_000
TRACE_BYTES = 100_000_000
DECODED_PACKETS = 50_000
LITERAL_BYTES = 2_000_000
TEXT = "abcdefghijklmnopqrstuvwxyz012345"
VALUES = [(n * 7919 % 2**31, n * 104729 % 2**32, n * 15485863**2, n << 40) for n in range(1, 65)]

FIELDS = "int32 1 int32\nuint32 2 uint32\nint64 3 int64\nuint64 4 uint64\ntext 5 string\n"
OURS = Table(__name__, {"Simple": FIELDS, "Nested": FIELDS + "nested 6 message:Nested"}, {})

Body = Callable[[], object]


def google_classes(path: str) -> tuple[Any, Any]:
    """Return google.protobuf's classes of two messages, from a file of descriptors."""
    files = descriptor_pb2.FileDescriptorSet.FromString(Path(path).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    find = pool.FindMessageTypeByName
    get = message_factory.GetMessageClass
    return get(find("bench.Simple")), get(find("bench.Nested"))


def google_simple(message_class: Any) -> Body:
    def body() -> None:
        for _ in range(MESSAGES // len(VALUES)):
            for a, b, c, d in VALUES:
                message = message_class()
                message.int32 = a
                message.uint32 = b
                message.int64 = c
                message.uint64 = d
                message.text = TEXT
                message.SerializeToString()

    return body


def our_simple() -> Body:
    writer_class = OURS.find("Simple").Writer

    def body() -> None:
        for _ in range(MESSAGES // len(VALUES)):
            for a, b, c, d in VALUES:
                writer = writer_class()
                writer.set_int32(a)
                writer.set_uint32(b)
                writer.set_int64(c)
                writer.set_uint64(d)
                writer.set_text(TEXT)
                writer.finish()

    return body


def google_nested(message_class: Any) -> Body:
    def body() -> None:
        for _ in range(MESSAGES // len(VALUES)):
            for a, b, c, d in VALUES:
                root = message_class()
                root.int32 = a
                root.uint32 = b
                root.int64 = c
                root.uint64 = d
                root.text = TEXT
                middle = root.nested
                middle.int32 = a
                middle.uint32 = b
                middle.int64 = c
                middle.uint64 = d
                middle.text = TEXT
                inner = middle.nested
                inner.int32 = a
                inner.uint32 = b
                inner.int64 = c
                inner.uint64 = d
                inner.text = TEXT
                root.SerializeToString()

    return body


def our_nested() -> Body:
    writer_class = OURS.find("Nested").Writer

    def body() -> None:
        for _ in range(MESSAGES // len(VALUES)):
            for a, b, c, d in VALUES:
                root = writer_class()
                root.set_int32(a)
                root.set_uint32(b)
                root.set_int64(c)
                root.set_uint64(d)
                root.set_text(TEXT)
                with root.set_nested() as middle:
                    middle.set_int32(a)
                    middle.set_uint32(b)
                    middle.set_int64(c)
                    middle.set_uint64(d)
                    middle.set_text(TEXT)
                    with middle.set_nested() as inner:
                        inner.set_int32(a)
                        inner.set_uint32(b)
                        inner.set_int64(c)
                        inner.set_uint64(d)
                        inner.set_text(TEXT)
                root.finish()

    return body


def make_packets() -> list[bytes]:
    """Return a trace of slices, a fourth of them with an annotation."""
    from stretto.protos.trace import TracePacket

    packets = []
    for n in range(DECODED_PACKETS):
        packet = TracePacket.Writer()
        packet.set_timestamp(123_456_789_012_345 + n * 1000)
        packet.set_trusted_packet_sequence_id(2)
        with packet.set_track_event() as event:
            event.set_type(1 + n % 2)
            event.set_track_uuid(2**63 + n % 7)
            event.set_name_iid(5 + n % 300)
            event.add_category_iids(1)
            if n % 4 == 0:
                with event.add_debug_annotations() as annotation:
                    annotation.set_name_iid(3)
                    annotation.set_int_value(n)
        packets.append(packet.finish())
    return packets


def google_decode(packets: list[bytes]) -> Body:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

    def body() -> None:
        for data in packets:
            packet = TracePacket.FromString(data)
            event = packet.track_event
            _ = (packet.timestamp, event.type, event.track_uuid, event.name_iid)

    return body


def our_decode(packets: list[bytes]) -> Body:
    from stretto.protos.trace import TracePacket

    trace = make_trace(packets)
    names = ("type", "track_uuid", "name_iid")
    rows = select(TracePacket, "timestamp", *(f"track_event.{name}" for name in names))

    def body() -> None:
        for _ in Tokenizer(rows).append(trace):
            pass

    return body


def our_decode_by_attributes(packets: list[bytes]) -> Body:
    from stretto.protos.trace import TracePacket

    decoder = TracePacket.Decoder

    def body() -> None:
        for data in packets:
            packet = decoder(data)
            event = packet.track_event
            _ = (packet.timestamp, event.type, event.track_uuid, event.name_iid)

    return body


def make_trace(packets: list[bytes]) -> bytes:
    return b"".join(b"\x0a" + bytes([len(packet)]) + packet for packet in packets)


def tokenize(trace: bytes) -> Body:
    def body() -> None:
        for _ in Tokenizer().append(trace):
            pass

    return body


def forms() -> dict[str, tuple[Body, Body, int]]:
    """Return, for text and for JSON, two parsers of a large packet and the length of its text."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket as GooglePacket

    from stretto.protos.trace import TracePacket

    data = bytes(range(256)) * (LITERAL_BYTES // 256)
    ours = TracePacket(compressed_packets=data)
    peer = GooglePacket(compressed_packets=data)
    texts = format_text(ours), google_text.MessageToString(peer)
    jsons = format_json(ours), google_json.MessageToJson(peer)
    return {
        "text": (
            lambda: parse_text(texts[0], TracePacket),
            lambda: google_text.Parse(texts[1], GooglePacket()),
            len(texts[0]),
        ),
        "json": (
            lambda: parse_json(jsons[0], TracePacket),
            lambda: google_json.Parse(jsons[1], GooglePacket()),
            len(jsons[0]),
        ),
    }


def timed(body: Body) -> float:
    """Return the CPU time of one call in nanoseconds."""
    gc.collect()
    start = time.thread_time_ns()
    body()
    return time.thread_time_ns() - start


def main() -> None:
    """Measure all operations once and print the figures."""
    simple, nested = google_classes(sys.argv[1])
    packets = make_packets()
    trace = make_trace(packets)
    trace *= TRACE_BYTES // len(trace)
    pairs: dict[str, tuple[Body, Body, int]] = {
        "simple": (our_simple(), google_simple(simple), MESSAGES),
        "nested": (our_nested(), google_nested(nested), MESSAGES),
        "decode": (our_decode(packets), google_decode(packets), len(packets)),
        "decode_attributes": (
            our_decode_by_attributes(packets),
            google_decode(packets),
            len(packets),
        ),
        **forms(),
    }
    figures = {}
    for name, (ours, peer, count) in pairs.items():
        for body in (ours, peer):
            timed(body)
        figures[name] = {"ours": timed(ours) / count, "peer": timed(peer) / count}
    seconds = timed(tokenize(trace)) / 1e9
    # Instead of a peer's time, compare with a limit of one second per gigabyte.
    figures["tokenizer"] = {"ours": seconds * 1e3, "peer": len(trace) / 1e9 * 1e3}
    print(json.dumps(figures))


main()
