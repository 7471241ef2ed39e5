"""Formats what a summary says of the C functions in samples: their cost, and which have none."""

from __future__ import annotations

from stretto.profilers.sampling.shortfalls import OVER_LIMIT, REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.profilers.sampling.profile import Profile


def native_lines(profile: Profile) -> list[str]:
    """Return lines, without full stops; none for a profile without C functions."""
    if not profile.settings.native:
        return []
    paused_ms = profile.paused_ns / 1e6
    cost = f"the process was stopped for {paused_ms:.1f} ms"
    lines = [f"{profile.native:,} samples have C functions; {cost}"]
    reasons = (REFUSED, profile.refused), (OVER_LIMIT, profile.unstopped - profile.refused)
    lines += [f"{number:,} samples have none: {reason}" for reason, number in reasons if number]
    problems = profile.native_problems.items()
    return lines + [f"the samples of {pid} have no C functions: {why}" for pid, why in problems]
