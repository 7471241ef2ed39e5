"""Finds the patterns of `--include` that matched no function in any process."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def unmatched_notes(reports: Mapping[int, list[str]], processes: set[int]) -> list[str]:
    """Return a line for each pattern that matched nothing; none if a process has no report.

    Args:
        reports: the patterns that matched nothing in a process, by pid.
        processes: pids of all recorded processes. Those that were killed have no report.
    """
    if not processes or not processes <= reports.keys():
        return []
    patterns = set.intersection(*(set(reports[pid]) for pid in processes))
    return [f"no function that was called matches --include {each}" for each in sorted(patterns)]
