"""Formats the lines of the summary about the use of time, and about what auto detail left out."""

from __future__ import annotations

import os

from stretto.base.installed_code import is_body, is_own_function
from stretto.cli.record.summary import plural, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stretto.recorder.host.result import RecordingResult
    from stretto.recorder.host.totals import FunctionTotals, ProcessTotals

TOP = 3
"""The number of functions per line."""
NOTABLE = 10
"""Imports have a line if the longest takes at least this part of the CPU time, a tenth, and so has
the garbage collector; waiting for a CPU is named if it is more than this part of all waiting."""


def time_text(nanoseconds: float) -> str:
    """Format a duration: `50 us`, `1.5 ms`, `12.3 s`."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if nanoseconds >= size:
            number = nanoseconds / size
            return f"{number:.1f} {unit}" if number % 1 and number < 100 else f"{number:.0f} {unit}"
    return f"{nanoseconds:.0f} ns"


class _Merged:
    """The calls and times of one function, summed over all processes."""

    def __init__(self, function: FunctionTotals) -> None:
        self.function = function
        self.own_ns = self.total_ns = self.waiting_ns = 0
        self.calls: int | None = 0

    def add(self, other: FunctionTotals) -> None:
        self.own_ns += other.own_ns
        self.total_ns += other.total_ns
        self.waiting_ns += other.waiting_ns
        counted = self.calls is not None and other.calls is not None
        self.calls = (self.calls or 0) + (other.calls or 0) if counted else None

    def is_body(self) -> bool:
        """Whether the function is the body of a module: such a body contains all other calls."""
        return is_body(self.function.name, self.function.file)

    def is_own(self) -> bool:
        """Whether the function is one of the program's own."""
        return is_own_function(self.function.name, self.function.file)

    def is_typed(self) -> bool:
        """Whether the function is in no file: in code after `-c`, or from standard input."""
        return self.function.file in ("<string>", "<stdin>")

    def text(self, nanoseconds: int) -> str:
        function = self.function
        place = f"{os.path.basename(function.file)}:{function.line}"
        calls = plural(self.calls, "call") if self.calls else "no call has ended"
        calls = "calls not counted" if self.calls is None else calls
        return f"{function.name} ({place}) {time_text(nanoseconds)}, {calls}"


def _merge(totals: Iterable[ProcessTotals]) -> list[_Merged]:
    merged: dict[tuple[str, str, int], _Merged] = {}
    for process in totals:
        for function in process.functions:
            key = (function.name, function.file, function.line)
            merged.setdefault(key, _Merged(function)).add(function)
    return list(merged.values())


def _top(title: str, functions: list[_Merged], time: Callable[[_Merged], int]) -> list[str]:
    top = [f for f in sorted(functions, key=time, reverse=True)[:TOP] if time(f)]
    return [f"  {title}: " + "; ".join(f.text(time(f)) for f in top)] if top else []


def _package(function: _Merged) -> str | None:
    """Return the package whose import the function is: `pandas` for `import pandas.core.frame`."""
    before, _, module = function.function.name.partition("import ")
    return module.partition(".")[0] if module and not before else None


def _imports(functions: Iterable[_Merged], running_ns: int) -> list[str]:
    """Return a line about the slowest imports, if one takes a notable part of the time.

    The import of a package contains those of its modules, and is the longest of them.
    """
    longest: dict[str, _Merged] = {}
    for function in functions:
        package = _package(function)
        if package and function.total_ns > getattr(longest.get(package), "total_ns", 0):
            longest[package] = function
    if max((f.total_ns for f in longest.values()), default=0) * NOTABLE < running_ns:
        return []
    return _top("imports, with what they import", [*longest.values()], lambda f: f.total_ns)


def _sum(totals: Iterable[ProcessTotals], name: str) -> int:
    return sum(process.numbers.get(name, 0) for process in totals)


def _collections(totals: Sequence[ProcessTotals]) -> list[str]:
    """Return a line about the garbage collector, if it takes a notable part of the CPU time.

    It runs in functions that allocate, whose times contain its own.
    """
    collecting = _sum(totals, "collecting_ns")
    if not collecting or collecting * NOTABLE < _sum(totals, "running_ns"):
        return []
    runs = plural(_sum(totals, "collections"), "run")
    return [f"  garbage collector: {time_text(collecting)} in {runs}, part of the times above"]


def _left_out(result: RecordingResult) -> str:
    counted = _sum(result.totals, "counted")
    off = sum(function.calls is None for process in result.totals for function in process.functions)
    shortest = max((process.numbers.get("threshold_ns", 0) for process in result.totals), default=0)
    if all(process.numbers.get("sampled") for process in result.totals):
        return f"calls shorter than {time_text(shortest)}, and those between two stack samples"
    text = f"{plural(counted, 'call')} shorter than {time_text(shortest)} counted, not shown"
    if off:
        text += f"; {plural(off, 'function')} with short calls switched off, calls not counted"
    return text


def _sampling(totals: Sequence[ProcessTotals]) -> list[str]:
    """Return a line about the stack samples: the longest period and gap of all processes."""
    period, longest = (
        max(process.numbers.get(name, 0) for process in totals)
        for name in ("period_ns", "longest_gap_ns")
    )
    if not period:
        return []
    text = f"every {time_text(period)}, at most {time_text(longest)} apart"
    sampled = any(process.numbers.get("sampled") for process in totals)
    missing = "shorter calls" if sampled else "shorter calls of functions switched off"
    return [f"  stack samples: {text}; {missing} may be missing"]


def _too_deep(totals: Iterable[ProcessTotals]) -> list[str]:
    """Return a line about the running time that belongs to no function, if there is some."""
    running = _sum(totals, "too_deep_ns")
    text = f"{time_text(running)} running, which no function above has"
    return [f"  stacks deeper than 1,024 calls: {text}"] if running else []


def _rises(result: RecordingResult) -> list[str]:
    return [
        f"  less detail: from {rise.seconds:.1f} s on, when the trace had {size_text(rise.size)}, "
        f"calls shorter than {time_text(rise.threshold_ns)} are not shown (--size)"
        for rise in result.rises
    ]


def _ready_ns(totals: Iterable[ProcessTotals]) -> int:
    """Return how long the threads waited for a CPU; 0 if the kernel doesn't tell it."""
    return min(_sum(totals, "ready_ns"), _sum(totals, "waiting_ns"))


def _waits(functions: list[_Merged], totals: Iterable[ProcessTotals]) -> list[str]:
    """Return a line about the functions that waited, which may have waited for a CPU only."""
    lines = _top("waiting in", functions, lambda f: f.waiting_ns)
    for_cpu = _ready_ns(totals) * NOTABLE > _sum(totals, "waiting_ns")
    return [f"{line} (waiting for a CPU included)" if for_cpu else line for line in lines]


def _times(totals: Iterable[ProcessTotals]) -> str:
    """Format how long the threads ran, waited for a CPU, and were blocked."""
    running, waiting = _sum(totals, "running_ns"), _sum(totals, "waiting_ns")
    if not _sum(totals, "knows_ready"):
        return f"{time_text(running)} running, {time_text(waiting)} waiting"
    ready = _ready_ns(totals)
    return (
        f"{time_text(running)} running, {time_text(ready)} waiting for a CPU, "
        f"{time_text(waiting - ready)} blocked"
    )


def detail_lines(result: RecordingResult) -> list[str]:
    """Return the summary's lines about auto detail."""
    totals = result.totals
    if not totals:  # No process has connected.
        return _rises(result)
    lines = [
        f"  threads: {_times(totals)}, {plural(len({each.pid for each in totals}), 'process')}"
    ]
    functions = _merge(totals)
    inner = [function for function in functions if not function.is_body()]
    own = [f for f in inner if f.is_own()] or [f for f in inner if f.is_typed()]
    calling = "with what they call" if own else "with what they call, all installed"
    lines += _top("running in", functions, lambda f: f.own_ns)
    lines += _top(calling, own or inner, lambda f: f.total_ns)
    lines += _imports(functions, _sum(totals, "running_ns"))
    lines += _collections(totals)
    lines += _waits(functions, totals)
    lines += _too_deep(totals)
    lines.append(f"  left out: {_left_out(result)}")
    return lines + _sampling(totals) + _rises(result)
