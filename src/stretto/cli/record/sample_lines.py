"""Formats the lines of the summary about stack samples."""

from __future__ import annotations

import os

from stretto.base.installed_code import is_body
from stretto.cli.attach import MODES, cut_lines
from stretto.cli.native_lines import native_lines
from stretto.cli.record.detail_lines import TOP, time_text
from stretto.cli.record.summary import plural
from stretto.profilers.sampling.process import WALL
from stretto.profilers.sampling.shortfalls import NOT_SEEN
from stretto.profilers.sampling.slower import slow_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.profilers.sampling.interned_stacks import FunctionKey
    from stretto.profilers.sampling.profile import FunctionSamples, Profile


def sample_lines(profile: Profile) -> list[str]:
    """Return the summary's lines about one kind of samples."""
    period_ns = profile.settings.period_ns
    head = f"{profile.sampled:,} of {plural(profile.processes, 'process')}"
    each = f"{time_text(period_ns)} of {MODES[profile.settings.mode]}"
    lines = [f"  samples: {head}, each is {each}"]
    if text := slow_text(profile.settings, profile.longest):
        lines.append(f"  {text}")
    functions = profile.functions()
    calling = [row for row in functions if not is_body(row.key.function, row.key.filename)]
    found = "seen in" if profile.settings.mode == WALL else "running in"
    lines += _top(found, functions, lambda row: row.own * period_ns)
    lines += _top("with what they call", calling, lambda row: row.total * period_ns)
    for label, missing in (
        ("the stack changed", profile.torn),
        ("they were late", profile.late),
        (NOT_SEEN, profile.unseen),
    ):
        if missing:
            lines.append(f"  lost: {plural(missing, 'sample')}: {label}")
    lines += [f"  {line}" for line in (*cut_lines(profile), *native_lines(profile))]
    return lines + [f"  not sampled: {problem}" for problem in profile.problems.values()]


def _top(
    title: str, functions: list[FunctionSamples], time_ns: Callable[[FunctionSamples], int]
) -> list[str]:
    top = [row for row in sorted(functions, key=time_ns, reverse=True)[:TOP] if time_ns(row)]
    texts = [f"{_label(row.key)} {time_text(time_ns(row))}" for row in top]
    return [f"  {title}: {'; '.join(texts)}"] if texts else []


def _label(key: FunctionKey) -> str:
    line = f":{key.line}" if key.line else ""
    return f"{key.function} ({os.path.basename(key.filename)}{line})"
