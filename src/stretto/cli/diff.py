"""The verb `diff`: compares two traces, or two groups of them, for people and for CI."""

from __future__ import annotations

import json
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.analysis.changed_callers import changed_caller
from stretto.analysis.open_packets import NoTraceError
from stretto.analysis.trace_addresses import paths_of
from stretto.analysis.trace_diff import MIN_GROUP, Change, changed_inside, compare, self_times
from stretto.analysis.trace_tables import damage, import_trace
from stretto.base.errors import CommandError
from stretto.cli.record.detail_lines import time_text
from stretto.cli.text_table import as_table
from stretto.cli.trace_reading import reading, warn, warn_of_damage
from stretto.cli.verb_parser import VerbParser, flag

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from stretto.analysis.trace_diff import Calls

DESCRIPTION = """\
Compare the self times of functions and slices in two traces, or in two groups of traces: each of
BEFORE and AFTER is a trace, a folder of traces, or a quoted pattern. Files in a folder that are no
traces are left out. Needs no other package.

  stretto diff before.pftrace after.pftrace
  stretto diff --cpu before.pftrace after.pftrace
  stretto diff --fail-above 10% 'main-*.pftrace' 'branch-*.pftrace'

With three or more traces on each side, noise is measured; with fewer it is estimated. A busy
machine makes everything slower; --cpu compares CPU time, which it changes little. Callers whose
time changed by what is inside them are listed below; --fail-above looks at self times only, and
names the caller if it was that which changed: it makes more calls, or its calls take longer.
"""

_LIMIT = 20
_CALLERS = 5
"""The most lines of callers."""


def _percent(text: str) -> float:
    """Parse `10%` or `10`."""
    value = float(text.removesuffix("%")) / 100
    if not value >= 0:
        raise ValueError(text)
    return value


_percent.__name__ = "percentage"  # argparse shows this name in its messages.


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = VerbParser("diff", DESCRIPTION)
    parser.add_argument("before", metavar="BEFORE")
    parser.add_argument("after", metavar="AFTER")
    parser.add_argument(
        "--fail-above",
        metavar="PERCENT",
        type=_percent,
        help="exit with status 1 if the time of a function or slice, or all time, grew by more, "
        "or if a trace is empty, cut off, damaged or lacks events",
    )
    parser.add_argument(
        "--min-share",
        metavar="PERCENT",
        type=_percent,
        default=0.01,
        help="--fail-above ignores functions and slices with less of the time (default: 1%%)",
    )
    flag(parser, "--cpu", "compare CPU time, of the slices for which the traces have it")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--limit", metavar="N", type=int, default=_LIMIT, help="lines of the table")
    parsed = parser.parse_args(arguments)
    if parsed.limit < 0:
        parser.error("--limit must be at least 0")
    return parsed


class _Side:
    """The traces before, or after.

    Attributes:
        times: The self times of each trace.
        unread: The paths of the traces that are damaged, lack events, or have no slice that ended.
    """

    def __init__(self, text: str, *, cpu: bool) -> None:
        self._cpu = cpu
        self._is_folder = Path(text).is_dir()
        self.times: list[dict[tuple[str, str], Calls]] = []
        self.unread: list[str] = []
        for path in paths_of(text):
            self._read(path)
        if not self.times:
            raise CommandError(f"diff: there is no trace {text!r}.", 2)

    def _read(self, path: str) -> None:
        with reading("diff", path):
            try:
                importer = import_trace(path)
            except NoTraceError as error:
                if not self._is_folder:
                    raise
                warn("diff", path, f"left out: {error}")
                return
        times = self_times(importer, cpu=self._cpu)
        nothing = "there are no slices" + (" with a CPU time" if self._cpu else "")
        missing = damage(importer) or ([] if times else [nothing])
        warn_of_damage("diff", path, missing)
        self.times.append(times)
        self.unread += [path] if missing else []


def _ratio_text(change: Change) -> str:
    if not change.before:
        return "new" if change.after else "+0.0%"
    return "gone" if not change.after else f"{change.ratio:+.1%}"


def _total_ratio_text(change: Change) -> str:
    """Format the change of the time with the slices inside."""
    if not change.total_before:
        return "new"
    return f"{change.total_after / change.total_before - 1:+.1%}"


_NOISE = {True: "noise", False: "", None: "few calls"}


def _row(change: Change) -> tuple[object, ...]:
    return (
        _ratio_text(change),
        time_text(change.before),
        time_text(change.after),
        f"{change.calls_before:.4g}",
        f"{change.calls_after:.4g}",
        _NOISE[change.is_noise],
        change.name,
        change.category,
    )


def _callers(changes: list[Change], given: argparse.Namespace) -> str:
    """Return a table of what changed by the slices inside; empty if nothing did."""
    rows = [
        (
            _total_ratio_text(change),
            time_text(change.total_before),
            time_text(change.total_after),
            f"{change.calls_before:.4g}",
            f"{change.calls_after:.4g}",
            change.name,
            change.category,
        )
        for change in changed_inside(changes, given.min_share)[: min(_CALLERS, given.limit)]
    ]
    columns = ["change", "total before", "total after", "calls", "calls after", "name", "category"]
    table = as_table(columns, rows, columns[:5])
    return f"\nChanged by the slices inside:\n\n{table}" if rows else ""


def _as_text(
    changes: list[Change], whole: Change, sizes: tuple[int, int], given: argparse.Namespace
) -> str:
    limit = given.limit
    columns = ["change", "before", "after", "calls", "calls after", "", "name", "category"]
    table = as_table(columns, [_row(change) for change in changes[:limit]], columns[:5])
    more = f"and {len(changes) - limit} more\n" if len(changes) > limit else ""
    hint = (
        f"Noise is estimated from the calls. With {MIN_GROUP} or more traces on each side it is "
        "measured.\n"
        if min(sizes) < MIN_GROUP
        else ""
    )
    times = f"{time_text(whole.before)} before, {time_text(whole.after)} after"
    head = f"Self time in slices: {times} ({_ratio_text(whole)})\n\n"
    return f"{head}{table}{more}{_callers(changes, given)}{hint}"


def _as_json(changes: list[Change], whole: Change) -> str:
    rows = [{**change._asdict(), "change": _ratio(change)} for change in changes]
    value = {"before": whole.before, "after": whole.after, "change": _ratio(whole), "rows": rows}
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _ratio(change: Change) -> float | None:
    return change.ratio if change.before else None


def _whole(changes: list[Change]) -> Change:
    before, after = sum(c.before for c in changes), sum(c.after for c in changes)
    return Change("", "all", before, after, 0, 0, 1, is_noise=None)


def _without_noise(whole: Change, changes: list[Change]) -> Change:
    """Return the change of all time without the changes that noise explains."""
    noise = sum(change.after - change.before for change in changes if change.is_noise)
    return whole._replace(after=whole.after - noise)


def _failures(
    changes: list[Change], whole: Change, sides: tuple[_Side, _Side], given: argparse.Namespace
) -> list[str]:
    """Return what grew by more than the limit; a caller that changed is named first."""
    limit = given.fail_above
    if limit is None:
        return []
    slower = [c for c in changes if c.share >= given.min_share and not c.is_noise]
    if _without_noise(whole, changes).ratio > limit:
        slower.insert(0, whole)
    causes: dict[str, list[str]] = {}
    for change in slower:
        if change.ratio > limit:
            text = f"{change.name} {_ratio_text(change)}"
            causes.setdefault(_cause(change, changes, sides), []).append(text)
    own = causes.pop("", [])
    return [*own, *(f"{cause} ({', '.join(texts)})" for cause, texts in causes.items())]


def _cause(change: Change, changes: list[Change], sides: tuple[_Side, _Side]) -> str:
    """Return a sentence about the caller that made a time grow; empty if there is none."""
    found = changed_caller((change.category, change.name), *(side.times for side in sides))
    if found is None:
        return ""
    # A caller that never ended has no times.
    caller = next((c for c in changes if (c.category, c.name) == found.caller), None)
    grew = f"{caller.name} {_total_ratio_text(caller)}" if caller else found.caller[1]
    callee = found.callee[1]
    if not found.more_calls:
        return f"{grew}: its calls of {callee} take longer"
    if isinf(found.more_calls):
        return f"{grew}: it calls {callee}, which it didn't before"
    return f"{grew}: it calls {callee} {found.more_calls:.3g} times as often"


def run(arguments: Sequence[str]) -> int:
    """Run `stretto diff`.

    Raises:
        CommandError: A trace can't be read, or a time grew by more than `--fail-above`; with this
            option also if a trace is damaged or has no slices.
    """
    given = _parse(arguments)
    before, after = (_Side(side, cpu=given.cpu) for side in (given.before, given.after))
    changes = compare(before.times, after.times)
    whole = _whole(changes)
    if given.format == "json":
        print(_as_json(changes, whole), end="")
    else:
        print(_as_text(changes, whole, (len(before.times), len(after.times)), given), end="")
    failures = _failures(changes, whole, (before, after), given)
    if failures:
        raise CommandError(
            f"diff: times grew by more than {given.fail_above:.0%}: {', '.join(failures)}."
        )
    unread = before.unread + after.unread
    if unread and given.fail_above is not None:
        raise CommandError(f"diff: not all was compared, as said above: {', '.join(unread)}.")
    return 0
