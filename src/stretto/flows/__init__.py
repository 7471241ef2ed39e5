"""Flows of RPC: an arrow from the sender of each message to its receiver, across processes.

    import stretto
    import stretto.flows

    stretto.flows.install()          # in both processes, before they connect

From then on, methods whose definition names a category (`(stretto.trace)` in a .proto file,
`@trace` in a .fidl file) become slices at both ends while a session records that category. The
slices are joined by arrows. Each end computes the arrows' ids on its own: no byte is added to the
messages. A message whose id can't be computed has no arrow, and is counted
(`stretto.flows.stats()`); a wrong arrow is never drawn. docs/flows.md has the rules, and the
wrappers for other transports.
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
