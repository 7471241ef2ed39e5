"""Where reading a damaged trace can begin again.

A service ends a packet with these bytes now and then: whoever reads, and has lost the borders of
packets, goes on behind the next ones. Source: docs/formats/service.md, "Order of packets".
"""

from __future__ import annotations

from typing import Final

SYNC_MARKER: Final = bytes.fromhex("82477a76b28d42ba81dc33326d57a079")
