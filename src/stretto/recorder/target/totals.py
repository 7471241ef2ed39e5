"""Writes the totals of auto detail in this process, for the summary.

The totals are written into the workspace, `totals/PID`, as lines of tab-separated fields. The first
line has pairs of a name and a number, each further line has the numbers of a function.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_FUNCTIONS = 2000
"""Functions that are written: those with the most time."""


def write(path: str, totals: dict[str, Any]) -> None:
    """Write the totals of this process; no effect if the folder was removed."""
    functions = sorted(totals.pop("functions"), key=lambda f: (-f[6] - f[7], -f[4]))
    first = "\t".join(f"{name}\t{value}" for name, value in totals.items())
    lines = [first]
    for name, file, line, calls, _, *times in functions[:MAX_FUNCTIONS]:
        if any(times):
            fields = (name, file, line, "" if calls is None else calls, *times)
            lines.append("\t".join(_field(field) for field in fields))
    try:
        with open(path, "w", encoding="utf-8", errors="replace") as out:
            out.write("\n".join(lines))
    except OSError:
        pass


def _field(value: object) -> str:
    return " ".join(str(value).split())
