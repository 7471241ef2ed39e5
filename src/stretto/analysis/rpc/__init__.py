"""The trace processor's protocol: requests and results as protobuf messages."""

from __future__ import annotations
