"""Sums the object graphs of a trace: how much memory the objects of each type keep alive.

    module shop ──> dict ──> shop.Cache ──> dict ──> 500 shop.Order ──> ...

    size        what the objects of a type take themselves: 500 times 48 bytes
    retained    what would be free without them: also what only they refer to, directly or not

Only the last graph of a process counts. Unreachable objects are left out: they are garbage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stretto.analysis.trace_tables import table_rows

if TYPE_CHECKING:
    from stretto import _native

_PARTS = "[more references]"
"""The type of the parts of objects with many references; the object's own type retains them."""


class HoldingType(NamedTuple):
    """A type of objects; sizes in bytes.

    Attributes:
        name: Its name.
        objects: The number of its objects.
        size: What they take themselves.
        retained: What would be free without them.
    """

    name: str
    objects: int
    size: int
    retained: int


class ProcessObjects(NamedTuple):
    """The last object graph of a process.

    Attributes:
        name: The process's name.
        pid: Its pid.
        objects: The number of objects that can be reached.
        size: Their size, in bytes.
        types: Their types, by what they retain.
    """

    name: str
    pid: int
    objects: int
    size: int
    types: list[HoldingType]


def object_graphs(importer: _native.TraceImporter) -> list[ProcessObjects]:
    """Return the processes with object graphs, the largest first."""
    graphs: dict[int, dict[int, list[HoldingType]]] = {}
    for upid, ts, name, objects, size, retained in importer.heap_classes():
        types = graphs.setdefault(upid, {}).setdefault(ts, [])
        types.append(HoldingType(name or "?", objects, size, retained))
    if not graphs:
        return []
    processes = table_rows(importer, "process")
    found = []
    for upid, by_time in graphs.items():
        process, types = processes[upid], by_time[max(by_time)]
        shown = [each for each in types if each.name != _PARTS]
        found.append(
            ProcessObjects(
                name=process["name"] or f"process {process['pid']}",
                pid=process["pid"],
                objects=sum(each.objects for each in shown),
                size=sum(each.size for each in shown),
                types=sorted(shown, key=lambda each: (-each.retained, each.name)),
            )
        )
    return sorted(found, key=lambda each: -each.size)
