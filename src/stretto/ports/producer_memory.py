"""The sizes of shared memory and pages that Stretto's own producers request.

A session's config may override the sizes, and a service limits them
(`service/endpoints/shm_geometry.py`).
"""

from __future__ import annotations

SHM_SIZE = 8 << 20
"""The size of the shared memory, in bytes."""

PAGE_SIZE = 32 << 10
"""The size of a page in bytes: a page of one chunk has room for the 1,022 packets that a chunk can
have, with their interned names."""
