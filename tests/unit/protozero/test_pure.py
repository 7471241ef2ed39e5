"""ProtoZero has the same results with and without the native extension.

`CODE` runs twice: in this interpreter, and in one that can't import the extension.
"""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

pytest.importorskip("stretto._native")

CODE = """
from stretto.protozero import wire
from stretto.protozero.decoder import Decoder
from stretto.protozero.selector import select
from stretto.protozero.tokenizer import Tokenizer
from stretto.protos.trace import TracePacket

print([wire.varint(number).hex() for number in (0, 127, 128, 2**63, 2**64 - 1)])
print([wire.tag(number, 2).hex() for number in (1, 15, 16, 2**29 - 1)])
print([wire.varint_field(900, number).hex() for number in (0, True, 300, -1, 2**64 - 1, -(2**63))])
print([wire.bytes_field(7, data) for data in (b"", bytearray(b"abc"), memoryview(bytes(200)))])

packet = TracePacket.Writer()
packet.set_timestamp(2**63)
packet.set_trusted_packet_sequence_id(3)
with packet.set_track_event() as event:
    event.set_name("é" * 100)
    event.set_type(1)
    for iid in (1, 2, 3):
        event.add_category_iids(iid)
    event.add_debug_annotations().set_double_value(0.5)
    event.add_debug_annotations().set_int_value(-7)
data = packet.finish()
print(data.hex())

decoder = TracePacket.Decoder(data + b"\\x0f")
event = decoder.track_event
print(decoder.timestamp, decoder.bytes_left, "timestamp" in decoder, 9 in decoder, decoder[10])
print(event.name, event.type, event.category_iids, event.track_uuid, event.legacy_event)
print([(a.double_value, a.int_value, a.string_value) for a in event.debug_annotations])
print([(f.number, f.wire_type, f.value, bytes(f.data)) for f in decoder], decoder)
print(bytes(TracePacket.Decoder(wire.bytes_field(50, b"abc")).compressed_packets or b""))
print(TracePacket.Decoder(wire.bytes_field(8, b"abc")).timestamp)
print(isinstance(TracePacket.timestamp, type(None)) if hasattr(TracePacket, "timestamp") else "")

broken = Decoder(wire.varint_field(1, -1) + wire.bytes_field(2, b"xyz")[:-1])
print([field.as_int64() for field in broken], broken.bytes_left, broken.error)

rows = select(TracePacket, "timestamp", "track_event.name", "track_event.category_iids")
tokenizer = Tokenizer(rows, marker=b"MARK")
stream = b"".join(wire.bytes_field(1, each) for each in (data, b"", data))
stream += b"\\x00..MARK" + wire.bytes_field(1, b"\\x40\\x05") + b"\\x0a"
for at in range(0, len(stream), 50):
    for row in tokenizer.append(stream[at : at + 50]):
        print(row)
print(list(tokenizer.end()), tokenizer.errors, tokenizer.bytes_skipped)
"""


def test_output_is_the_same_without_the_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    exec(compile(CODE, "native", "exec"), {})
    monkeypatch.undo()
    without = f"import sys; sys.modules['stretto._native'] = None\n{CODE}"
    done = subprocess.run(
        [sys.executable, "-c", without], capture_output=True, text=True, encoding="utf-8"
    )
    assert done.stderr == ""
    assert done.stdout == out.getvalue()
    assert out.getvalue().count("\n") > 12


def test_native_classes_are_used_if_the_extension_exists() -> None:
    import stretto.protozero.decoder
    import stretto.protozero.typed_decoder

    assert stretto.protozero.decoder.Decoder.__module__ == "stretto._native"
    root = stretto.protozero.typed_decoder.TypedDecoder
    assert root.__base__.__module__ == "stretto._native"
