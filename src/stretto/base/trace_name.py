"""The names of trace files."""

from __future__ import annotations


def name_complaint(path: str) -> str:
    """Return the error for a file name that is wrong for a recording; "" for other names."""
    if not path.lower().endswith(".json"):
        return ""
    trace = f"{path[:-5]}.pftrace"
    return (
        f"a recording is a Perfetto trace, not JSON: write it to {trace!r}; "
        f"`stretto convert {trace} {path}` makes JSON of it"
    )
