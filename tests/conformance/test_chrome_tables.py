"""The importer's tables of Chromium's packets are equal to those of Perfetto's trace processor:
typed arguments by schemas, JSON in arguments, metadata, types of processes.
"""

from __future__ import annotations

import struct

import pytest

from stretto.protozero.wire import bytes_field, tag, varint, varint_field
from tests.conformance.test_tables import THREAD, begin, check, encode, end, event, track
from tests.support.oracle import Oracle

descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
text_format = pytest.importorskip("google.protobuf.text_format")

pytestmark = pytest.mark.once


def legacy(ts: int, name: str, phase: str) -> str:
    """Return a packet with an event that has a phase instead of a type."""
    return (
        f"packet {{ trusted_packet_sequence_id: 2 timestamp: {ts} track_event {{ track_uuid: 0 "
        f'name: "{name}" legacy_event {{ phase: {ord(phase)} }} }} }}\n'
    )


KNOWN_FIELDS = THREAD + "".join(
    [
        begin(10, "a", 'chrome_user_event { action: "Click" action_hash: 18446744073709551615 }'),
        begin(20, "b", "chrome_latency_info { trace_id: 5 step: STEP_SWAP_BUFFERS is_coalesced: 0 "
        "component_info { component_type: COMPONENT_INPUT_EVENT_LATENCY_UI time_us: 7 } "
        "component_info { time_us: 8 } component_info { } }"),
        begin(30, "c", "chrome_application_state_info { application_state: "
        "APPLICATION_STATE_HAS_RUNNING_ACTIVITIES } source_location { line_number: 3 }"),
        begin(35, "nothing", "chrome_keyed_service { }"),
        begin(36, "histogram", 'chrome_histogram_sample { name: "h" sample: -5 }'),
        begin(37, "missing", "task_execution { posted_from_iid: 99 } source_location_iid: 0"),
        event(40, "INSTANT", 'name: "i" chrome_active_processes { pid: 10 pid: -1 }'),
        end(50, 'chrome_message_pump { sent_messages_in_queue: true io_handler_location_iid: 3 }'),
        legacy(60, "mark", "R"),
        legacy(61, "object", "N"),
    ]
)  # fmt: skip
JSON = THREAD + "".join(
    begin(ts, "json", f"debug_annotations {{ name: 'p' legacy_json_value: {value!r} }}")
    for ts, value in enumerate(
        ['{"a": 1, "b": {"c.d": [true, null, "x", 1.5, {}]}, "e": null}', '"text"', "[1, 2]"],
        start=10,
    )
)
PROCESSES = (
    track(1, "process { pid: 10 process_name: '' } chrome_process { process_type: 1 "
    "crash_trace_id: 18446744073709551615 host_app_package_name: 'app' }")
    + track(2, "process { pid: 20 process_name: 'own' } chrome_process { process_type: "
    "6 }")
    + track(3, "process { pid: 30 chrome_process_type: 2 } chrome_process { }")
    + """
packet { timestamp: 5 chrome_events { metadata { name: "n" int_value: -1 } metadata { name: "b"
  bool_value: true } metadata { name: "t" string_value: "x" } metadata { name: "j"
  json_value: "{}" } metadata { name: "none" } metadata { name: "t" string_value: "y" } } }
packet { timestamp: 6 chrome_events { metadata { name: "n" int_value: 2 } } }
packet { timestamp: 7 chrome_metadata { chrome_version_code: 9 enabled_categories: "a,b" } }
packet { timestamp: 8 chrome_metadata { chrome_version_code: 10 } }
packet { timestamp: 9 process_descriptor { pid: 40 process_name: "legacy" } }
"""
)  # fmt: skip

SCHEMA = """
file {
  name: "own.proto" package: "own"
  message_type {
    name: "Event"
    extension { extendee: ".perfetto.protos.TrackEvent" name: "own" number: 9900 type: TYPE_MESSAGE
      type_name: ".own.All" label: LABEL_OPTIONAL }
    extension { extendee: ".perfetto.protos.TrackEvent" name: "many" number: 9901 type: TYPE_INT32
      label: LABEL_REPEATED }
  }
  message_type {
    name: "All"
    field { name: "f_double" number: 1 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
    field { name: "f_float" number: 2 type: TYPE_FLOAT label: LABEL_OPTIONAL }
    field { name: "f_int64" number: 3 type: TYPE_INT64 label: LABEL_OPTIONAL }
    field { name: "f_uint64" number: 4 type: TYPE_UINT64 label: LABEL_OPTIONAL }
    field { name: "f_int32" number: 5 type: TYPE_INT32 label: LABEL_OPTIONAL }
    field { name: "f_fixed64" number: 6 type: TYPE_FIXED64 label: LABEL_OPTIONAL }
    field { name: "f_sfixed32" number: 7 type: TYPE_SFIXED32 label: LABEL_OPTIONAL }
    field { name: "f_bool" number: 8 type: TYPE_BOOL label: LABEL_OPTIONAL }
    field { name: "f_string" number: 9 type: TYPE_STRING label: LABEL_REPEATED }
    field { name: "f_bytes" number: 10 type: TYPE_BYTES label: LABEL_OPTIONAL }
    field { name: "f_sint64" number: 11 type: TYPE_SINT64 label: LABEL_OPTIONAL }
    field { name: "f_enum" number: 12 type: TYPE_ENUM type_name: ".own.All.Kind"
      label: LABEL_REPEATED }
    field { name: "f_packed" number: 13 type: TYPE_UINT32 label: LABEL_REPEATED
      options { packed: true } }
    field { name: "f_all" number: 14 type: TYPE_MESSAGE type_name: ".own.All"
      label: LABEL_REPEATED }
    field { name: "f_annotations" number: 15 type: TYPE_MESSAGE
      type_name: ".perfetto.protos.DebugAnnotation" label: LABEL_REPEATED }
    enum_type { name: "Kind" value { name: "ZERO" number: 0 }
      value { name: "NEGATIVE" number: -2 } }
  }
}
"""
FIXED64, FIXED32 = 1, 5
MESSAGE = b"".join(
    [
        tag(1, FIXED64) + struct.pack("<d", -0.5),
        tag(2, FIXED32) + struct.pack("<f", 0.25),
        varint_field(3, (1 << 64) - 7),
        varint_field(4, (1 << 64) - 7),
        varint_field(5, (1 << 64) - 7),
        tag(6, FIXED64) + struct.pack("<Q", 1 << 63),
        tag(7, FIXED32) + struct.pack("<i", -3),
        varint_field(8, 1),
        bytes_field(9, b"one"),
        bytes_field(9, b""),
        bytes_field(10, b"\x00\xff"),
        bytes_field(10, b"abc"),
        varint_field(11, 5),
        varint_field(12, 0),
        varint_field(12, (1 << 64) - 2),
        varint_field(12, 99),
        bytes_field(13, varint(1) + varint(300)),
        bytes_field(13, varint(5)),
        bytes_field(14, b""),
        bytes_field(14, varint_field(8, 0) + bytes_field(14, bytes_field(9, b"deep"))),
        bytes_field(15, bytes_field(10, b"note") + varint_field(4, 12)),
        varint_field(500, 1),
    ]
)


def packet(event_fields: bytes, ts: int) -> bytes:
    fields = bytes_field(23, b"own") + varint_field(9, 3) + varint_field(11, 7) + event_fields
    return bytes_field(1, varint_field(10, 2) + varint_field(8, ts) + bytes_field(11, fields))


def schema() -> bytes:
    parsed = text_format.Parse(SCHEMA, descriptor_pb2.FileDescriptorSet())
    return bytes_field(1, bytes_field(72, bytes_field(1, parsed.SerializeToString())))


@pytest.mark.parametrize("text", [KNOWN_FIELDS, JSON, PROCESSES], ids=["known", "json", "process"])
def test_tables_of_chromium_packets_are_equal(text: str, oracle: type[Oracle]) -> None:
    check(encode(text))


@pytest.mark.parametrize("is_first", [True, False], ids=["schema first", "schema last"])
def test_arguments_by_a_schema_in_the_trace_are_equal(is_first: bool, oracle: type[Oracle]) -> None:
    annotation = bytes_field(10, b"proto") + bytes_field(16, b".own.All") + bytes_field(8, MESSAGE)
    unknown = bytes_field(10, b"proto") + bytes_field(16, b".own.None") + bytes_field(8, MESSAGE)
    events = b"".join(
        [
            packet(bytes_field(9900, MESSAGE) + varint_field(9901, 1) + varint_field(9901, 2), 10),
            packet(bytes_field(4, annotation), 20),
            packet(bytes_field(4, unknown), 30),
            packet(bytes_field(9902, b"?") + bytes_field(9900, b""), 40),
        ]
    )
    trace = encode(THREAD)
    check(trace + schema() + events if is_first else trace + events + schema())
