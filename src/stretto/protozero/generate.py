"""Regenerate what is generated: `python -m stretto.protozero.generate [ROOT]`.

ROOT is a checkout of this repository, by default the current folder. Trace and
config messages come from the descriptors inside the `perfetto` distribution,
protobuf's own from those inside `protobuf` (both are needed here only), IPC
messages from `src/stretto/protos/ipc/*.proto`.
"""

from __future__ import annotations

import base64
import importlib
import sys
import textwrap
from pathlib import Path

from stretto.protozero.generator import (
    c_emitter,
    descriptor_set,
    modules,
    proto_parser,
    python_emitter,
    stub_emitter,
)
from stretto.protozero.generator.compiler import Options, compile_files
from stretto.protozero.generator.names import WELL_KNOWN, WELL_KNOWN_PACKAGE
from stretto.protozero.generator.schema import Field, Schema
from stretto.protozero.wire import bytes_field

PACKAGE = "perfetto.protos."
PERFETTO_MODULE = "perfetto.protos.perfetto.trace.perfetto_trace_pb2"
IPC_PROTOS = "src/stretto/protos/ipc"
COMMAND = "python -m stretto.protozero.generate"

# The modules, with their docstrings.
CONFIG = (
    "stretto.protos.config",
    "Configuration of sessions and data sources: TraceConfig and all it holds.",
)
TRACE = (
    "stretto.protos.trace",
    "Contents of traces: TracePacket and all it holds, except configuration.",
)
IPC = ("stretto.protos.ipc", "Messages of the producer, consumer and relay sockets.")

# What the native core reads or writes.
C_NAMES = """
TracePacket TracePacketDefaults TrackEvent TrackEvent.LegacyEvent TrackEventDefaults
TrackDescriptor ProcessDescriptor ThreadDescriptor CounterDescriptor
DebugAnnotation DebugAnnotation.NestedValue DebugAnnotationName DebugAnnotationValueTypeName
InternedData EventName EventCategory SourceLocation LogMessage InternedString
ClockSnapshot ClockSnapshot.Clock BuiltinClock TracingServiceEvent TestEvent
IPCFrame IPCFrame.BindService IPCFrame.BindServiceReply IPCFrame.BindServiceReply.MethodInfo
IPCFrame.InvokeMethod IPCFrame.InvokeMethodReply IPCFrame.RequestError IPCFrame.SetPeerIdentity
CommitDataRequest CommitDataRequest.ChunksToMove CommitDataRequest.ChunkToPatch
CommitDataRequest.ChunkToPatch.Patch RegisterTraceWriterRequest UnregisterTraceWriterRequest
"""

# What the native encoders of track events write: of each message these fields, or all.
C_SETTERS = {
    "TracePacket": "timestamp timestamp_clock_id sequence_flags trace_packet_defaults"
    " clock_snapshot track_descriptor track_event interned_data",
    "TracePacketDefaults": "timestamp_clock_id track_event_defaults",
    "TrackEventDefaults": "track_uuid",
    "TrackEvent": "type category_iids categories name_iid name track_uuid debug_annotations"
    " counter_value double_counter_value flow_ids terminating_flow_ids source_location_iid",
    "TrackDescriptor": "uuid name thread parent_uuid counter",
    "ThreadDescriptor": "pid tid",
    "DebugAnnotation": "",
    "InternedData": "event_names event_categories debug_annotation_names source_locations",
    "EventName": "",
    "EventCategory": "",
    "DebugAnnotationName": "",
    "SourceLocation": "",
    "ClockSnapshot": "clocks",
    "ClockSnapshot.Clock": "",
}


def read_schema(root: Path) -> Schema:
    """Read all our sources."""
    perfetto = descriptor_set.read_module(PERFETTO_MODULE)
    ipc = proto_parser.parse(sorted((root / IPC_PROTOS).glob("*.proto")), perfetto)
    return Schema([*perfetto, *ipc])


def outputs(root: Path) -> dict[str, str]:
    """The text of every generated file, by its path from the root."""
    schema = read_schema(root)
    names = [PACKAGE + name for name in C_NAMES.split()]
    texts = {"native/core/fields.h": c_emitter.emit(schema, names, "STRETTO_CORE_FIELDS_H_")}
    texts["native/core/setters.h"] = c_emitter.emit_setters(
        schema,
        [_c_setters(schema, PACKAGE + name, fields) for name, fields in C_SETTERS.items()],
        "STRETTO_CORE_SETTERS_H_",
        COMMAND,
    )
    perfetto, *own = schema.files
    plan = [
        (*CONFIG, [PACKAGE + name for name in ("TraceConfig", "DataSourceDescriptor")]),
        (*TRACE, perfetto.type_names()),
        (*IPC, [name for file in own for name in file.type_names()]),
    ]
    for module in modules.split(schema, plan):
        path = f"src/{module.name.replace('.', '/')}.py"
        texts[path] = python_emitter.emit(module, COMMAND)
        texts[path + "i"] = stub_emitter.emit(module, COMMAND)
    return texts | _well_known()


def _well_known() -> dict[str, str]:
    """Classes and descriptors of the files that ship with protobuf."""
    encoded = b""
    for name in WELL_KNOWN:
        module = importlib.import_module(f"google.protobuf.{name}_pb2")
        encoded += bytes_field(1, module.DESCRIPTOR.serialized_pb)
    files = descriptor_set.read_descriptor_set(encoded)
    for file in files:  # our folder of them is flat
        file.name = file.name.rpartition("/")[2]
        file.public = [name.rpartition("/")[2] for name in file.public]
    made = compile_files(files, [file.name for file in files], Options(WELL_KNOWN_PACKAGE))
    folder = f"src/{WELL_KNOWN_PACKAGE.replace('.', '/')}"
    texts = {f"{folder}/{path}": text for path, text in made.items()}
    lines = textwrap.wrap(base64.b64encode(encoded).decode(), 92)
    text = "\n".join(f'    "{line}"' for line in lines)
    texts[f"{folder}/descriptors.py"] = (
        f'"""Generated by `{COMMAND}`; do not edit."""\n\nFILE_DESCRIPTOR_SET = (\n{text}\n)\n'
        '"""A FileDescriptorSet, in base64."""\n'
    )
    return texts


def _c_setters(schema: Schema, name: str, wanted: str) -> tuple[str, list[Field]]:
    by_name = {field.name: field for field in schema.messages[name].fields}
    return name, [by_name[field] for field in wanted.split() or by_name]


def main(arguments: list[str]) -> None:
    """Write every generated file below the root."""
    root = Path(arguments[0] if arguments else ".")
    if not (root / IPC_PROTOS).is_dir():
        raise SystemExit(f"{root}: no {IPC_PROTOS} here; name a checkout of stretto")
    for path, text in outputs(root).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
