"""The byte sequence at which a reader can resume in a damaged trace.

A service regularly ends a packet with these bytes. A reader that has lost the packet boundaries
continues after the next marker. Source: docs/formats/service.md, "Order of packets".
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

SYNC_MARKER: Final = bytes.fromhex("82477a76b28d42ba81dc33326d57a079")
