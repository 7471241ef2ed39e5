"""Protobuf's well-known types are part of Stretto and need not be generated."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from stretto.protozero.generator import names, proto_parser, well_known_files
from stretto.protozero.generator.compiler import Options, compile_files
from tests.support.generated import load_text

EVENT = """\
syntax = "proto3";
package app;
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
message Event {
  google.protobuf.Timestamp when = 1;
  google.protobuf.Struct details = 2;
}
"""


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    (tmp_path / "event.proto").write_text(EVENT)
    return tmp_path


def test_well_known_message_decodes_bytes_of_google_protobuf(schema: Path) -> None:
    google = pytest.importorskip("google.protobuf.timestamp_pb2")
    files = proto_parser.parse_imported(["event.proto"], [schema])
    texts = compile_files(files, ["event.proto"], Options("well_known_event"))
    module = load_text(texts["event_pbzero.py"], "well_known_event.event_pbzero")
    when = google.Timestamp(seconds=-5, nanos=7)
    event = module.Event.decode(b"\x0a" + bytes([when.ByteSize()]) + when.SerializeToString())
    assert (event.when.seconds, event.when.nanos) == (-5, 7)
    assert type(event.when).__module__ == "stretto.protozero.well_known.timestamp_pbzero"


def test_imported_well_known_types_are_not_generated(schema: Path) -> None:
    files = proto_parser.parse_imported(["event.proto"], [schema])
    assert set(compile_files(files, ["event.proto"], Options("app"))) == {
        "event_pbzero.py", "event_pbzero.pyi",
    }  # fmt: skip


def test_file_on_the_import_path_replaces_the_well_known_file(schema: Path) -> None:
    own = schema / "google/protobuf/timestamp.proto"
    own.parent.mkdir(parents=True)
    own.write_text(
        'syntax = "proto3"; package google.protobuf; message Timestamp { bool own = 1; }'
    )
    files = proto_parser.parse_imported(["event.proto"], [schema])
    (timestamp,) = (file for file in files if file.name == "google/protobuf/timestamp.proto")
    assert [field.name for field in timestamp.messages[0].fields] == ["own"]


@pytest.mark.parametrize("name", names.WELL_KNOWN)
def test_each_well_known_file_has_a_module(name: str) -> None:
    path = f"google/protobuf/{name}.proto"
    *_, file = well_known_files.well_known_files(path)
    module = importlib.import_module(names.well_known_module(path))
    assert file.name == path
    assert [getattr(module, m.name.rpartition(".")[2])().encode() for m in file.messages]


@pytest.mark.parametrize("path", ["timestamp.proto", "google/protobuf/any.txt", "google/type/any"])
def test_file_that_is_no_well_known_type_has_no_well_known_module(path: str) -> None:
    assert names.well_known_module(path) == ""
