"""The names of trace files."""

from __future__ import annotations


def name_complaint(path: str) -> str:
    """Return the error for a file name that is wrong for a recording; "" for other names."""
    name = path[:-3] if path.lower().endswith(".gz") else path
    if not name.lower().endswith(".json"):
        return ""
    trace = f"{name[:-5]}.pftrace"
    return (
        f"a recording is a Perfetto trace, not JSON: write it to {trace!r}; "
        f"`stretto convert {trace} {name}` makes JSON of it"
    )
