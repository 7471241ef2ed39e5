"""The files of an archive make the same tables as in Perfetto's trace processor."""

from __future__ import annotations

import gzip
import io
import zipfile

import pytest

from tests.conformance.tables import compare
from tests.support.oracle import Oracle

text_format = pytest.importorskip("google.protobuf.text_format")
perfetto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

pytestmark = pytest.mark.once


def packets(thread: int, first: int, name: str) -> bytes:
    """Return a trace with slices, a counter, flows and tracks; the ids are always the same."""
    own = "trusted_packet_sequence_id: 2"
    text = f"""
packet {{ {own} sequence_flags: 1
  track_descriptor {{ uuid: 7 thread {{ pid: 10 tid: {thread} thread_name: "{name}" }} }} }}
packet {{ {own} track_descriptor {{ uuid: 8 parent_uuid: 7 name: "lane" }} }}
packet {{ {own} track_descriptor {{ uuid: 9 name: "size" counter {{}} }} }}
packet {{ {own} interned_data {{ event_names {{ iid: 1 name: "{name}" }} }} }}
"""
    for step in range(5):
        ts = first + 100 * step
        text += f"""
packet {{ {own} timestamp: {ts} track_event {{ type: TYPE_SLICE_BEGIN track_uuid: 7 name_iid: 1
  flow_ids: {thread} }} }}
packet {{ {own} timestamp: {ts + 5} track_event {{ type: TYPE_SLICE_BEGIN track_uuid: 8 name: "b"
  terminating_flow_ids: {thread} }} }}
packet {{ {own} timestamp: {ts + 9} track_event {{ type: TYPE_SLICE_END track_uuid: 8 }} }}
packet {{ {own} timestamp: {ts + 9} track_event {{ type: TYPE_COUNTER track_uuid: 9
  counter_value: {step} }} }}
packet {{ {own} timestamp: {ts + 60} track_event {{ type: TYPE_SLICE_END track_uuid: 7 }} }}
packet {{ {own} timestamp: {ts + 70} track_event {{ type: TYPE_INSTANT name: "global" }} }}
"""
    return bytes(text_format.Parse(text, perfetto.Trace()).SerializeToString())


JSON = b'[{"ph": "X", "pid": 30, "tid": 31, "ts": 0.3, "dur": 1, "name": "j", "args": {"n": 1}}]'
FILES = {
    "b.pftrace": packets(11, 100, "first"),
    "a.pftrace": packets(12, 150, "second"),
    "c.gz": gzip.compress(packets(13, 50, "third")),
    "folder/d.json": JSON,
}


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in FILES.items():
            archive.writestr(name, data)
    return file.getvalue()


OF_THE_ARCHIVE = {
    (side, name) for side in ("missing", "extra") for name in ("trace_type", "trace_size_bytes")
}
"""Metadata that describe the archive, where Stretto describes its files."""


def test_files_of_an_archive_make_equal_tables(oracle: type[Oracle]) -> None:
    results = {result.table: result for result in compare(zipped())}
    metadata = results.pop("metadata")
    assert {example[:2] for example in metadata.examples} <= OF_THE_ARCHIVE
    assert results["slice"].equal == 46
    assert all(result.is_equal for result in results.values()), "\n".join(
        str(result) for result in results.values() if not result.is_equal
    )
