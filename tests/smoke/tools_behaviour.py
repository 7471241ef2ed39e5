"""Tests of everything that needs no native code: messages and verbs that read traces.

Uses only unittest, because it also runs where only Stretto is installed (smoke.py), with the
native wheel and with the pure one. With the pure wheel, these tests run the `*_pure` modules of
`stretto.protozero`.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import stretto
from stretto.analysis import trace_tables
from stretto.cli.main import main
from stretto.protos.trace import TracePacket
from stretto.protozero import wire
from stretto.protozero.decoder import Decoder
from stretto.protozero.selector import select
from stretto.protozero.tokenizer import Tokenizer
from stretto.protozero.writer import MessageWriter

TRACE = """
packet {
  trusted_packet_sequence_id: 1
  sequence_flags: 1
  track_descriptor { uuid: 7 thread { pid: 3 tid: 4 thread_name: "worker" } }
}
packet {
  trusted_packet_sequence_id: 1
  timestamp: 1000
  track_event { type: TYPE_SLICE_BEGIN track_uuid: 7 name: "paint" categories: "render" }
}
packet {
  trusted_packet_sequence_id: 1
  timestamp: 3000
  track_event { type: TYPE_SLICE_END track_uuid: 7 }
}
"""


class Verbs(unittest.TestCase):
    """Run `stretto VERB` in this process."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file("trace.txt").write_text(TRACE)
        self.run_verb("convert", "trace.txt", "trace.pftrace")

    def file(self, name: str) -> Path:
        return self.folder / name

    def run_verb(self, verb: str, *files: str) -> str:
        """Run a verb; return its standard output."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            code = main([verb, *(str(self.file(name)) for name in files)])
        self.assertEqual(code, 0)
        return output.getvalue()

    def test_convert_verb_keeps_all_packets_in_text_and_json(self) -> None:
        packets = self.file("trace.pftrace").read_bytes()
        for form in ("text.txt", "form.json"):
            self.run_verb("convert", "trace.pftrace", form)
            self.run_verb("convert", form, "back.pftrace")
            self.assertEqual(self.file("back.pftrace").read_bytes(), packets)

    def test_convert_verb_keeps_slices_in_fxt(self) -> None:
        self.run_verb("convert", "trace.pftrace", "trace.fxt")
        self.run_verb("convert", "trace.fxt", "back.pftrace")
        self.run_verb("convert", "back.pftrace", "back.txt")
        text = self.file("back.txt").read_text()
        for name in ("paint", "render", "worker"):
            self.assertIn(f'"{name}"', text)

    def test_doctor_says_whether_the_native_part_is_installed(self) -> None:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            main(["doctor"])
        level = "ok" if stretto.available() else "missing"
        self.assertEqual(output.getvalue().split()[:3], [level, "native", "part"])

    @unittest.skipUnless(trace_tables.available(), "the importer is native")
    def test_flows_verb_reads_a_trace(self) -> None:
        self.assertIn("No call", self.run_verb("flows", "trace.pftrace"))

    @unittest.skipIf(trace_tables.available(), "the importer is native")
    def test_flows_verb_says_that_it_needs_the_native_part(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(main(["flows", str(self.file("trace.pftrace"))]), 1)
        self.assertIn("flows: this is Stretto without its native part", errors.getvalue())


class Messages(unittest.TestCase):
    """Tests of the readers and writers of messages that docs/protozero.md shows."""

    def setUp(self) -> None:
        packet = TracePacket.Writer()
        packet.set_timestamp(1000)
        with packet.set_track_event() as event:
            event.set_name("paint" * 30)
            event.add_categories("render")
            event.add_categories("slow")
            event.add_flow_ids(2**64 - 1)
        self.data = packet.finish()

    def test_writer_and_value_class_write_the_same_message(self) -> None:
        message = TracePacket.decode(self.data)
        assert message.track_event is not None
        self.assertEqual(message.timestamp, 1000)
        self.assertEqual(message.track_event.categories, ["render", "slow"])
        self.assertEqual(TracePacket.decode(message.encode()), message)

    def test_decoder_reads_fields_by_number(self) -> None:
        decoder = Decoder(self.data)
        found = {field.number: field for field in decoder}
        self.assertEqual(found[8].as_uint64(), 1000)
        self.assertIn(23, [inner.number for inner in found[11].as_message()])
        self.assertEqual(decoder.bytes_left, 0)

    def test_typed_decoder_reads_fields_by_name(self) -> None:
        packet = TracePacket.Decoder(self.data)
        self.assertEqual(packet.timestamp, 1000)
        self.assertIn("track_event", packet)
        self.assertNotIn("interned_data", packet)
        self.assertIsNone(packet.interned_data)
        event = packet.track_event
        assert event is not None
        self.assertEqual((event.name, event.track_uuid), ("paint" * 30, 0))
        self.assertEqual(event.categories, ["render", "slow"])
        self.assertEqual(event.flow_ids, [2**64 - 1])

    def test_tokenizer_reads_rows_of_a_stream_in_pieces(self) -> None:
        stream = wire.bytes_field(1, self.data) * 3
        names = Tokenizer(select(TracePacket, "timestamp", "track_event.categories"))
        rows = [*names.append(stream[:50]), *names.append(stream[50:]), *names.end()]
        self.assertEqual(rows, [(1000, ["render", "slow"])] * 3)

    def test_writer_of_fields_by_number_writes_into_a_file(self) -> None:
        file = io.BytesIO()
        with MessageWriter(file) as message, message.nested(3, MessageWriter) as nested:
            nested.append_varint(1, 42)
            nested.append_bytes(2, "foo")
        self.assertEqual(file.getvalue(), b"\x1a\x07\x08\x2a\x12\x03foo")


if __name__ == "__main__":
    unittest.main()
