"""Limits of identifiers. Source: docs/formats/shared_memory.md, "Identifiers"."""

from __future__ import annotations

MAX_PRODUCER_ID = 65535
MAX_BUFFER_ID = 65535
SERVICE_SEQUENCE_ID = 1
"""The sequence of the service's own packets; writers get 2, 3, ... in order of appearance."""
