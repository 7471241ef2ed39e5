"""Object graphs are summed by type, with what the types retain."""

from __future__ import annotations

from stretto.analysis.object_totals import HoldingType, object_graphs
from stretto.analysis.trace_tables import import_trace
from stretto.cli.object_tables import objects_as_text, objects_as_values
from stretto.protozero.wire import bytes_field, varint_field

TYPES = ["module shop", "shop.Order", "bytes", "[more references]"]


def thing(number: int, kind: int, size: int, *references: int) -> bytes:
    return bytes_field(
        2,
        varint_field(1, number)
        + varint_field(2, kind)
        + varint_field(3, size)
        + bytes_field(5, bytes(references)),
    )


def graph(ts: int, *objects: bytes, pid: int = 40) -> bytes:
    types = [
        bytes_field(9, varint_field(1, i) + bytes_field(3, name.encode()))
        for i, name in enumerate(TYPES, 1)
    ]
    root = bytes_field(7, bytes_field(1, b"\1") + varint_field(2, 5))
    content = varint_field(1, pid) + b"".join([*objects, *types, root])
    packet = varint_field(8, ts) + varint_field(10, 3) + bytes_field(56, content)
    return bytes_field(1, packet)


OLD = graph(10, thing(1, 1, 5_000_000))
NEW = graph(
    20,
    thing(1, 1, 100, 2, 3),
    thing(2, 2, 50, 4),
    thing(3, 2, 50, 4, 6),
    thing(4, 3, 3000),
    thing(5, 3, 7777),  # Garbage.
    thing(6, 4, 0, 7),
    thing(7, 3, 400),
)


def test_last_graph_counts_and_garbage_does_not() -> None:
    (found,) = object_graphs(import_trace(OLD + NEW))
    assert (found.pid, found.objects, found.size) == (40, 5, 3600)
    assert found.types == [
        HoldingType("module shop", 1, 100, 3600),
        HoldingType("bytes", 2, 3400, 3400),
        # Both orders refer to the first bytes, so neither retains them.
        HoldingType("shop.Order", 2, 100, 500),
    ]


def test_summary_has_a_table_of_the_first_types() -> None:
    processes = object_graphs(import_trace(NEW))
    text = objects_as_text(processes, 2)
    lines = text.splitlines()
    assert "process 40 (pid 40) has 5 objects, 3.5 KiB" in lines
    assert [line.split() for line in lines[-3:]] == [
        ["3.5", "KiB", "100", "bytes", "1", "module", "shop"],
        ["3.3", "KiB", "3.3", "KiB", "2", "bytes"],
        ["and", "1", "type", "more"],
    ]
    (value,) = objects_as_values(processes, 1)
    assert value["types"] == [{"name": "module shop", "objects": 1, "size": 100, "retained": 3600}]


def test_trace_without_object_graphs_has_no_table() -> None:
    assert objects_as_text(object_graphs(import_trace(b"")), 10) == ""
