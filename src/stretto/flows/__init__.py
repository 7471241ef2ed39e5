"""Flows of RPC: each message an arrow from its sender to its receiver, across processes.

    import stretto
    import stretto.flows

    stretto.flows.install()          # in both processes, before they connect

From then on, methods whose definition names a category (`(stretto.trace)` in a .proto file,
`@trace` in a .fidl file) are slices at both ends while a session records that category, joined by
arrows whose ids both ends compute alone: no byte is added to what they say. What it doesn't
know how to join, it counts (`stretto.flows.stats()`) and leaves without an arrow; a wrong arrow
is never drawn. docs/flows.md has the rules, and the wrappers for other transports.
"""

from __future__ import annotations

from stretto.flows.installation import (
    disable,
    enable,
    incoming,
    install,
    installed,
    stats,
    uninstall,
)

__all__ = ["disable", "enable", "incoming", "install", "installed", "stats", "uninstall"]
