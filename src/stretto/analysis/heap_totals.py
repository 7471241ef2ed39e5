"""Sums the heap profiles of a trace: which functions hold memory, and what grew between two dumps.

    heap_profile_allocation    ts 1   load   +8 MB     the first dump
                               ts 2   load   +3 MB     what changed until the second one
                               ts 2   load   -1 MB

    held    of a function: the sum of all rows, here 10 MB
    grown   the sum of the rows after the first dump of the program, here 2 MB

At an exec everything is free, and the dumps of another program follow: they aren't compared with
those before.

`self` is what the function itself has allocated, `total` includes what its calls have.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.stack_names import StackNames
from stretto.analysis.trace_tables import table_rows

if TYPE_CHECKING:
    from typing import Any

    from stretto import _native

    _Function = tuple[str, str]


class HoldingFunction(NamedTuple):
    """A function in the heap profiles of a process; sizes in bytes.

    Attributes:
        name: Its name.
        file: Its file; "" if the trace has none.
        self: What is held of its own allocations.
        total: What is held of its own allocations and of those of the functions that it called.
        self_grown: How much more that is than at the first dump; `self`.
        total_grown: The same for `total`.
    """

    name: str
    file: str
    self: int
    total: int
    self_grown: int
    total_grown: int


class ProfiledProcess(NamedTuple):
    """The heap profiles of a process; sizes in bytes.

    Attributes:
        name: The process's name.
        pid: Its pid.
        dumps: The number of dumps with changes, since the last exec.
        grown_ns: The time from the first of these dumps to the last one.
        heaps: What is held at the last dump, by the name of the heap.
        grown: How much more that is than at the first of these dumps.
        functions: Its functions, by what they hold themselves.
    """

    name: str
    pid: int
    dumps: int
    grown_ns: int
    heaps: dict[str, int]
    grown: int
    functions: list[HoldingFunction]


def profiled_processes(importer: _native.TraceImporter) -> list[ProfiledProcess]:
    """Return the processes with heap profiles, the one that holds most first."""
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in table_rows(importer, "heap_profile_allocation"):
        rows.setdefault(row["upid"], []).append(row)
    if not rows:
        return []
    stacks, processes = StackNames(importer), table_rows(importer, "process")
    found = [_process(processes[upid], its, stacks) for upid, its in rows.items()]
    return sorted(found, key=lambda process: -sum(process.heaps.values()))


def _process(
    process: dict[str, Any], rows: list[dict[str, Any]], stacks: StackNames
) -> ProfiledProcess:
    profilers: dict[str, list[dict[str, Any]]] = {}
    heaps: Counter[str] = Counter()
    for row in rows:
        heaps[row["heap_name"]] += row["size"]
        # The heaps of a profiler (`python.obj`, `python.raw`) are dumped together.
        profilers.setdefault(row["heap_name"].partition(".")[0], []).append(row)
    times = {name: _times_of_last_program(its) for name, its in profilers.items()}
    later = [row for name, its in profilers.items() for row in its if row["ts"] > times[name][0]]
    return ProfiledProcess(
        name=process["name"] or f"process {process['pid']}",
        pid=process["pid"],
        dumps=max(map(len, times.values())),
        grown_ns=max(its[-1] - its[0] for its in times.values()),
        heaps=dict(heaps),
        grown=sum(row["size"] for row in later),
        functions=_functions(_by_stack(rows), _by_stack(later), stacks),
    )


def _times_of_last_program(rows: list[dict[str, Any]]) -> list[int]:
    """Return the times of a profiler's dumps since the process last held nothing: after its exec.

    If it holds nothing at the end, no program follows: these are the times since the time before.
    """
    changes: Counter[int] = Counter()
    for row in rows:
        changes[row["ts"]] += row["size"]
    times = sorted(changes)
    held = accumulate(changes[time] for time in times)
    starts = [i for i, size in enumerate(held, 1) if not size and i < len(times)]
    return times[starts[-1] if starts else 0 :]


def _by_stack(rows: list[dict[str, Any]]) -> Counter[int]:
    sizes: Counter[int] = Counter()
    for row in rows:
        sizes[row["callsite_id"]] += row["size"]
    return sizes


def _functions(
    held: Counter[int], grown: Counter[int], stacks: StackNames
) -> list[HoldingFunction]:
    own, total = _by_function(held, stacks)
    own_grown, total_grown = _by_function(grown, stacks)
    found = [
        HoldingFunction(*key, own[key], size, own_grown[key], total_grown[key])
        for key, size in total.items()
    ]
    return sorted(found, key=lambda each: (-each.self, -each.total, each.name))


def _by_function(
    sizes: Counter[int], stacks: StackNames
) -> tuple[Counter[_Function], Counter[_Function]]:
    own: Counter[_Function] = Counter()
    total: Counter[_Function] = Counter()
    for callsite, size in sizes.items():
        functions = stacks.functions(callsite)
        own[functions[0]] += size
        for function in set(functions):
            total[function] += size
    return own, total
