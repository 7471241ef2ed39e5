"""The tables of heap graphs are equal to those of Perfetto's trace processor.

The traces are written by hand. Perfetto's package has no classes for these packets, so the messages
are built from field numbers.
"""

from __future__ import annotations

import pytest

from stretto.analysis import TraceProcessor
from stretto.analysis.sql.errors import QueryError
from tests.conformance.test_tables import check
from tests.support.oracle import Oracle

pytestmark = pytest.mark.once

Value = int | str | bytes | list[int]


def varint(value: int) -> bytes:
    """Encode an unsigned integer."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def message(*fields: tuple[int, Value]) -> bytes:
    """Encode a message; a list becomes a packed field."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
            continue
        data = value.encode() if isinstance(value, str) else value
        data = b"".join(map(varint, data)) if isinstance(data, list) else data
        out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def packet(field: int, content: bytes, ts: int = 10, sequence: int = 5) -> bytes:
    """Return a packet of a trace."""
    return message((1, message((8, ts), (10, sequence), (field, content))))


def graph(*parts: tuple[int, Value], **place: int) -> bytes:
    """Return a packet with a part of a heap graph."""
    return packet(56, message((1, 40), *parts), **place)


def obj(*fields: tuple[int, Value]) -> tuple[int, Value]:
    """Return an object: 1 id, 2 class, 3 size, 4 fields, 5 references, 6 base, 7 difference."""
    return 2, message(*fields)


def cls(*fields: tuple[int, Value]) -> tuple[int, Value]:
    """Return a class: 1 id, 2 location, 3 name, 4 size, 5 superclass, 6 fields, 7 kind."""
    return 9, message(*fields)


def root(kind: int, *objects: int) -> tuple[int, Value]:
    """Return roots."""
    return 7, message((1, list(objects)), (2, kind))


def field(iid: int, name: str) -> tuple[int, Value]:
    """Return the name of a field."""
    return 4, message((1, iid), (2, name))


CONTINUED = (5, 1)
NAMES = graph(
    obj((1, 1), (2, 20), (3, 64), (4, [1, 2]), (5, [2, 0])),
    obj((7, 1), (2, 21), (5, [3, 4, 1])),
    obj((7, 1), (2, 22), (6, 1), (5, [3]), (10, [9, 1])),
    obj((1, 4), (2, 21), (4, [1]), (5, [1, 2])),
    cls((1, 20), (3, "a"), (4, 5), (7, 1), (2, 1)),
    cls((1, 21), (3, "b[]"), (4, 16), (5, 23), (6, [1, 2])),
    cls((1, 23), (3, "base"), (6, [3]), (5, 24)),
    cls((1, 22), (3, "java.lang.Class<a>"), (6, [2]), (5, 22), (8, 77), (2, 9)),
    cls((1, 30), (3, "unused"), (4, 1), (7, 99)),
    field(1, "int a.x"),
    field(2, "a.y"),
    field(3, " base.z"),
    (8, message((1, 1), (2, "/data/app/~~zz/com.example-1/base.apk"))),
    root(2, 1, 5),
    root(5, 1),
    root(1, 1, 999),
)


def superclasses(leaf: str, ts: int) -> bytes:
    """Return a graph in which `leaf` has the superclass middle, and that java.lang.Object."""
    return graph(
        obj((1, 1), (2, 1), (4, [1]), (5, [2])),
        obj((1, 2), (2, 2), (4, [1]), (5, [3])),
        obj((1, 3), (2, 3), (4, [1]), (5, [0])),
        obj((1, 4), (2, 4), (4, [1]), (5, [1])),
        cls((1, 1), (3, f"java.lang.Class<{leaf}>")),
        cls((1, 2), (3, "java.lang.Class<middle>")),
        cls((1, 3), (3, "java.lang.Class<java.lang.Object>")),
        cls((1, 4), (3, f"java.lang.Class<{leaf}[]>")),
        cls((1, 5), (3, leaf)),
        cls((1, 6), (3, "middle")),
        cls((1, 7), (3, "java.lang.Object")),
        cls((1, 8), (3, f"{leaf}[]")),
        field(1, "java.lang.Class.superClass"),
        ts=ts,
    )


CLEANERS = graph(
    obj((1, 1), (2, 1), (4, [1, 2, 3]), (5, [10, 20, 0])),
    obj((1, 2), (2, 1), (4, [1, 2, 3]), (5, [11, 20, 2])),
    obj((1, 3), (2, 1), (4, [1, 2]), (5, [10, 20])),
    obj((1, 10), (2, 2), (3, 8)),
    obj((1, 11), (2, 2), (3, 8)),
    obj((1, 20), (2, 3), (4, [4]), (5, [30])),
    obj((1, 30), (2, 4), (8, 1001)),
    cls((1, 1), (3, "sun.misc.Cleaner"), (7, 11)),
    cls((1, 2), (3, "bitmap")),
    cls((1, 3), (3, "thunk")),
    cls((1, 4), (3, "libcore.util.NativeAllocationRegistry"), (4, 24)),
    field(1, "java.lang.ref.Reference.referent"),
    field(2, "sun.misc.Cleaner.thunk"),
    field(3, "sun.misc.Cleaner.next"),
    field(4, "libcore.util.NativeAllocationRegistry$CleanerThunk.this$0"),
    root(3, 1, 2),
)
HEAPS = graph(
    obj((1, 1), (2, 1), (3, 1), (9, 2), (5, [2])),
    obj((1, 2), (2, 1), (3, 1), (5, [3])),
    obj((1, 3), (2, 1), (3, 1), (9, 1)),
    obj((1, 4), (2, 1), (3, 1), (9, 3)),
    obj((1, 5), (2, 1), (3, 1), (9, 0)),
    cls((1, 1), (3, "x"), (7, 2)),
    root(13, 3),
)
# Object 5 is reached from both roots; object 4, from the second one, by a shorter path.
TWO_ROOTS = graph(
    obj((1, 1), (2, 1), (3, 1), (5, [2, 3])),
    obj((1, 2), (2, 2), (3, 2), (5, [4, 5])),
    obj((1, 3), (2, 2), (3, 3), (5, [5])),
    obj((1, 4), (2, 3), (3, 4)),
    obj((1, 5), (2, 3), (3, 5), (5, [1])),
    obj((1, 6), (2, 1), (3, 6), (5, [4])),
    cls((1, 1), (3, "a")),
    cls((1, 2), (3, "Abx")),
    cls((1, 3), (3, "c")),
    root(1, 6, 1),
)
PARTS = (
    graph(obj((1, 1), (2, 1), (4, [1]), (5, [2])), field(1, "late"), CONTINUED)
    + graph(obj((1, 9), (2, 9), (4, [1]), (5, [9])), field(1, "other"), CONTINUED, sequence=6)
    + graph(
        obj((1, 2), (2, 1), (4, [1]), (5, [1])), cls((1, 1), (3, "c"), (4, 3)), root(1, 1), (6, 1)
    )
    + graph(obj((1, 7), (2, 2)), (6, 4), CONTINUED, ts=20)
    + graph(obj((1, 8), (2, 2)), (6, 5), ts=30)
)
PACKAGES = packet(
    47,
    message((1, message((1, "com.other"), (2, 10123), (3, 1), (5, 7))), (1, message((1, "x")))),
    ts=1,
)
OWNER = packet(2, message((1, message((1, 40), (2, 1), (3, "app"), (5, 10123)))), ts=2)


def mapping(package: str, original: str) -> bytes:
    """Return a packet with the original names of class `a`."""
    names = message((1, "a"), (2, original), (3, message((1, "x"), (2, f"{original}.full"))))
    member = (3, message((1, "y"), (2, "short")))
    return packet(64, message((1, package), (3, names + message(member))))


DEOBFUSCATED = mapping("com.example", "First") + mapping("com.wrong", "Wrong") + NAMES
TRACES = {
    "names of fields and classes": NAMES,
    "superclasses": superclasses("leaf", 10),
    "two graphs": superclasses("leaf", 10) + superclasses("tree", 20) + NAMES,
    "native sizes": CLEANERS,
    "heaps": HEAPS,
    "several packets": PARTS,
    "original names": DEOBFUSCATED,
    "original names by the process": PACKAGES
    + OWNER
    + DEOBFUSCATED.replace(b"/data/app", b"/data/xxx").replace(b"com.wrong", b"com.other"),
}


@pytest.mark.parametrize("name", TRACES)
def test_heap_graphs_are_those_of_the_trace_processor(name: str, oracle: type[Oracle]) -> None:
    check(TRACES[name])


VIEWS = ("heap_graph_object", "heap_graph_class", "heap_graph_reference", "package_list")


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_views_of_heap_graphs_have_the_columns_of_the_trace_processor(
    engine: str, oracle: type[Oracle]
) -> None:
    pytest.importorskip("duckdb")
    trace = PACKAGES + CLEANERS
    judge = oracle(trace)
    with TraceProcessor(trace, engine=engine) as ours:
        for view in VIEWS:
            query = f"select * from {view} order by id"
            result = ours.query(query)
            assert (list(result.columns), result.fetchall()) == judge.table(query)


FLAME_GRAPH = "select * from experimental_flamegraph('graph', 10, null, {}, null, {})"


@pytest.mark.thorough
@pytest.mark.parametrize("focus", ["null", "''", "'A'", "'native'", "'x'", "'none'"])
@pytest.mark.parametrize("name", ["native sizes", "heaps", "original names", "two roots"])
def test_flame_graph_is_that_of_the_trace_processor(
    name: str, focus: str, oracle: type[Oracle]
) -> None:
    pytest.importorskip("duckdb")
    trace = {**TRACES, "two roots": TWO_ROOTS}[name]
    judge = oracle(trace)
    ((upid,),) = judge.query("select upid from process where pid = 40")
    query = FLAME_GRAPH.format(upid, focus)
    with TraceProcessor(trace) as ours:
        result = ours.query(query)
        assert (list(result.columns), result.fetchall()) == judge.table(query)


def test_flame_graphs_of_other_profiles_are_refused() -> None:
    pytest.importorskip("duckdb")
    query = "select * from experimental_flamegraph('perf', null, '<=1', 1, null, null)"
    with TraceProcessor(CLEANERS) as ours, pytest.raises(QueryError, match="only 'graph'"):
        ours.query(query)
