"""The object graphs of small programs, read by the importer.

Programs of their own: the graph of the test process would have the objects of the tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from stretto import _pyhooks
from stretto.analysis.trace_tables import import_trace, table_rows

HEAD = """
import array, collections, ctypes, gc, json, os, signal, sys
from stretto import _pyhooks
from stretto.profilers.heap import object_graph
from stretto.protozero import wire

class Plain:
    def __init__(self):
        self.first = [1, 2]

def save(**options):
    with open(sys.argv[1], "wb") as file:
        def write(packet):
            file.write(wire.bytes_field(1, packet + wire.varint_field(10, 7)))
            return True
        object_graph.write_graph(write, **options)
"""


class Reference(NamedTuple):
    field: str
    type: str
    size: int
    id: int


class Graph:
    """A graph in the tables of the importer, and what the program has printed."""

    def __init__(self, trace: bytes, printed: Any) -> None:
        self.printed = printed
        importer = import_trace(trace)
        stats = table_rows(importer, "stats")
        self.errors = [row["name"] for row in stats if row["severity"] == "error" and row["value"]]
        self.objects = table_rows(importer, "__intrinsic_heap_graph_object")
        self._classes = table_rows(importer, "__intrinsic_heap_graph_class")
        self._references: dict[int, list[dict[str, Any]]] = {}
        for row in table_rows(importer, "__intrinsic_heap_graph_reference"):
            self._references.setdefault(row["owner_id"], []).append(row)

    def type_of(self, number: int) -> str:
        return str(self._classes[self.objects[number]["type_id"]]["name"])

    def of_type(self, name: str) -> list[dict[str, Any]]:
        return [each for each in self.objects if self.type_of(each["id"]) == name]

    def references(self, number: int) -> list[Reference]:
        return [
            Reference(
                row["field_name"],
                self.type_of(row["owned_id"]),
                self.objects[row["owned_id"]]["self_size"],
                row["owned_id"],
            )
            for row in self._references.get(number, [])
        ]

    def variable(self, name: str) -> Reference:
        """Return what a variable of the call `main` refers to."""
        (frame,) = self.of_type("frame main")
        (found,) = [each for each in self.references(frame["id"]) if each.field == name]
        return found


@pytest.fixture
def graph_of(tmp_path: Path) -> Callable[[str], Graph]:
    """Run a program that saves its graph, and may print a value as JSON."""

    def run(code: str) -> Graph:
        trace = tmp_path / "graph"
        command = [sys.executable, "-c", HEAD + code, str(trace)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
        assert done.stderr == ""
        return Graph(trace.read_bytes(), json.loads(done.stdout or "null"))

    return run


VALUES = """
class Slots:
    __slots__ = ("value",)
def main():
    values = {
        "a_list": [None] * 100,
        "an_empty_list": [],
        "a_grown_list": list(range(5)) + [6],
        "a_tuple": (1, 2, 3),
        "a_dict": {i: i for i in range(1000)},
        "a_set": set(range(1000)),
        "some_text": "\\xe4" * 999,
        "some_bytes": b"x" * 12345,
        "a_bytearray": bytearray(4321),
        "an_int": 1 << 1000,
        "a_float": 1.5,
        "a_deque": collections.deque(range(1000)),
        "an_array": array.array("q", range(500)),
        "an_instance": Plain(),
        "a_slots_instance": Slots(),
        "a_class": Plain,
        "a_code": main.__code__,
        "a_function": main,
        "a_generator": (i for i in range(3)),
        "a_static_type": int,
        "a_module": gc,
    }
    save()
    print(json.dumps({name: sys.getsizeof(value) for name, value in values.items()}))
main()
"""


def test_sizes_are_those_of_getsizeof(graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of(VALUES)
    references = graph.references(graph.variable("values").id)
    sizes = {each.field: each.size for each in references if each.field != "[key]"}
    assert sizes == graph.printed
    assert graph.errors == []


def test_python_code_of_the_program_is_not_run(graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of("""
class Liar:
    def __sizeof__(self):
        raise RuntimeError("the graph must not run this")
def main():
    kept = Liar()
    save()
    print(object.__sizeof__(kept))
main()
""")
    found = graph.variable("kept")
    assert found.type == "__main__.Liar"
    assert found.size >= graph.printed


def test_references_are_those_of_the_garbage_collector(graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of("""
def main():
    thing = Plain()
    values = [thing, thing, (thing, "text"), {"key": thing}, {1: thing}, {thing}, Plain.__init__]
    print(json.dumps([[type(each).__qualname__ for each in gc.get_referents(value)]
                      for value in values]))
    save()
main()
""")
    # A list visits its items from the last one on.
    found = graph.references(graph.variable("values").id)[::-1]
    assert found[0].id == found[1].id == graph.variable("thing").id
    # The collector leaves out the strings that are keys.
    types = [
        sorted(
            each.type.removeprefix("__main__.")
            for each in graph.references(value.id)
            if (each.field, each.type) != ("[key]", "str")
        )
        for value in found
    ]
    assert types == [sorted(names) for names in graph.printed]
    assert ("key", "__main__.Plain") in {each[:2] for each in graph.references(found[3].id)}


ROOTS = """
class HeldByC:
    pass
class Garbage:
    pass
def main():
    held, cycle = HeldByC(), Garbage()
    cycle.itself = cycle
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))
    gc.collect()
    gc.disable()
    del held, cycle
    save()
main()
"""


def test_roots_are_modules_calls_and_what_c_code_holds(graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of(ROOTS)
    (module,) = graph.of_type("module collections")
    assert module["root_type"] == "ROOT_STICKY_CLASS"
    (namespace,) = [each for each in graph.references(module["id"]) if each.type == "dict"]
    deque = [each.type for each in graph.references(namespace.id) if each.field == "deque"]
    assert deque == ["type"]
    (call,) = graph.of_type("frame main")
    assert call["root_type"] == "ROOT_JAVA_FRAME"
    (held,) = graph.of_type("__main__.HeldByC")
    assert held["root_type"] == "ROOT_JNI_GLOBAL"
    (garbage,) = graph.of_type("__main__.Garbage")
    assert not garbage["reachable"]


def test_object_with_many_references_has_parts(graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of("""
def main():
    numbers = [float(i) for i in range(50_000)]
    save()
main()
""")
    here: Reference | None = graph.variable("numbers")
    found = parts = 0
    while here is not None:
        references = graph.references(here.id)
        found += sum(each.type == "float" for each in references)
        here = next((each for each in references if each.type == "[more references]"), None)
        parts += 1
    assert (found, parts) == (50_000, 4)


def test_objects_above_the_limit_are_left_out_and_the_graph_says_so(
    graph_of: Callable[[str], Graph],
) -> None:
    graph = graph_of("save(max_objects=1000)")
    (left_out,) = graph.of_type("[objects left out]")
    assert left_out["reachable"]
    assert 1000 < len(graph.objects) < 1100
    assert graph.errors == []


def test_copy_that_ends_too_early_leaves_an_incomplete_graph(
    graph_of: Callable[[str], Graph],
) -> None:
    graph = graph_of("""
def short(fd, max_objects, time_ns):
    os.write(fd, (100).to_bytes(4, "little") + b"short")
    return os.posix_spawn("/bin/true", ["true"], {})
_pyhooks.object_graph = short
save()
""")
    assert [graph.type_of(each["id"]) for each in graph.objects] == ["[object graph is incomplete]"]
    assert graph.errors == []


def test_program_does_not_notice_the_copy(graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of("""
ended = []
signal.signal(signal.SIGCHLD, lambda *_: ended.append(1))
files = os.listdir("/proc/self/fd")
save()
reader, writer = os.pipe()
pid = _pyhooks.object_graph(writer, 100, 10**9)
try:
    child = os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    child = None
os.waitpid(pid, 0x40000000)
os.close(reader), os.close(writer)
print(json.dumps([ended, child, files == os.listdir("/proc/self/fd")]))
""")
    assert graph.printed == [[], None, True]
    assert graph.of_type("module __main__")


def test_arguments_are_checked() -> None:
    for fd, objects in ((-1, 1), (1, (1 << 24) + 1)):
        with pytest.raises(ValueError, match="object_graph"):
            _pyhooks.object_graph(fd, objects, 0)
