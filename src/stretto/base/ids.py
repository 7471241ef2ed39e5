"""Identifiers, each with its scope.

They are plain ints at run time. The separate types let the type checker find mixed-up ids. Source:
docs/formats/shared_memory.md, "Identifiers".
"""

from __future__ import annotations

from typing import NewType

ProducerID = NewType("ProducerID", int)
"""1..65535, one per producer connection of a service; wraps, skips those in use."""

WriterID = NewType("WriterID", int)
"""1..32767, per producer: a sequence of packets by one thread."""

ChunkID = NewType("ChunkID", int)
"""u32, per (producer, writer): counts chunks, wraps."""

BufferID = NewType("BufferID", int)
"""1..65535, global to a service. (In a config: an index into `buffers`.)"""

PacketSequenceID = NewType("PacketSequenceID", int)
"""Per session: 1 is the service, writers get 2, 3, ... in order of appearance."""

DataSourceInstanceID = NewType("DataSourceInstanceID", int)
"""Global to a service, from 1: one data source of one producer in one session."""

TracingSessionID = NewType("TracingSessionID", int)
"""Global to a service, from 1."""

FlushRequestID = NewType("FlushRequestID", int)
"""Global to a service, from 1, ascending."""

MAX_PRODUCER_ID = 65535
MAX_WRITER_ID = 32767
MAX_BUFFER_ID = 65535
SERVICE_SEQUENCE_ID = PacketSequenceID(1)
