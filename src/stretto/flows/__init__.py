"""Flows of RPC: an arrow from the sender of each message to its receiver, across processes.

    import stretto
    import stretto.flows

    stretto.flows.install()          # in both processes, before they connect

A method is traced if its definition names a category (`(stretto.trace)` in a .proto file, `@trace`
in a .fidl file). While a session records that category, each call of the method is a slice at both
ends, and arrows join the slices.

Each end computes the arrows' ids on its own: no byte is added to the messages. A message whose id
can't be computed has no arrow, and is counted (`stretto.flows.stats()`).

docs/flows.md describes the rules, and the wrappers for other transports.
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
