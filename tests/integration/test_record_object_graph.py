"""Object graphs of recorded and of connected programs, read by the real trace processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stretto.analysis.object_totals import object_graphs
from stretto.analysis.trace_tables import import_trace
from stretto.protos.config import DataSourceConfig, JavaHprofConfig, TraceConfig
from tests.support.live_program import LiveProgram
from tests.support.recorded import check_trace, record
from tests.support.service_process import ServiceProcess

SHOP = """
import os, sys

class Order:
    def __init__(self, number):
        self.lines = [bytes(1000) for _ in range(10)]

class Cache:
    def __init__(self):
        self.orders = {number: Order(number) for number in range(500)}

cache = Cache()
shared = Order(0)
first, second = [shared], [shared]
if len(sys.argv) > 1 and os.fork() == 0:
    cache = None
    sys.exit()
elif len(sys.argv) > 1:
    os.wait()
"""
ORDERS = 500
ORDER_BYTES = 10 * 1033

RETAINED = """
include perfetto module android.memory.heap_graph.dominator_tree;
select p.pid, count(*), sum(d.dominated_size_bytes), sum(d.dominated_obj_count)
from heap_graph_dominator_tree d
join heap_graph_object o using (id)
join heap_graph_class c on c.id = o.type_id
join process p using (upid)
where c.name = '{}' group by 1 order by 3
"""


def retained(loaded: Any, name: str) -> list[tuple[int, int, int]]:
    """Return, of each process, the objects of a type, and the bytes and objects they retain."""
    return [tuple(row[1:]) for row in loaded.query(RETAINED.format(name))]


def test_record_shows_who_holds_the_objects_of_the_program_and_its_children(
    oracle: Any, tmp_path: Path
) -> None:
    script = tmp_path / "shop.py"
    script.write_text(SHOP)
    run = record(tmp_path / "t.pftrace", "--object-graph", str(script), "children")
    assert run.status == 0
    assert run.stderr.count("Traceback") == 0
    loaded = check_trace(oracle, run.trace)
    (((caches, size, objects)),) = retained(loaded, "__main__.Cache")
    assert caches == 1
    # The cache, its dict, the orders with their lists, each line, and most numbers.
    assert objects > ORDERS * 12
    assert size > ORDERS * ORDER_BYTES
    (child, program) = retained(loaded, "__main__.Order")
    assert child[0] == 1
    assert program[0] == ORDERS + 1
    assert size > program[1] > ORDERS * ORDER_BYTES
    # What `stretto summary` says agrees with Perfetto's dominators.
    processes = object_graphs(import_trace(run.trace))
    assert [len(each.types) > 50 for each in processes] == [True, True]
    types = {each.name: each for each in processes[0].types}
    assert types["__main__.Cache"].retained == size
    assert (types["__main__.Order"].objects, types["__main__.Order"].retained) == program[:2]
    # Two lists hold the shared order, so neither dominates it.
    other_dominators = loaded.query(
        "include perfetto module android.memory.heap_graph.dominator_tree;"
        "select oc.name from heap_graph_dominator_tree d join heap_graph_object o using (id)"
        " join heap_graph_class c on c.id = o.type_id"
        " join heap_graph_object p on p.id = d.idom_id"
        " join heap_graph_class oc on oc.id = p.type_id"
        " where c.name = '__main__.Order' and oc.name != 'dict'"
    )
    assert other_dominators == []
    assert loaded.query("select count(distinct upid) from heap_graph_object") == [(2,)]


CONNECTED = """
import stretto
stretto.connect()
class Kept: pass
kept = [Kept()]
"""


def graph_config(**options: Any) -> TraceConfig:
    source = DataSourceConfig(
        name="python.object_graph", java_hprof_config=JavaHprofConfig(**options)
    )
    return TraceConfig(
        buffers=[TraceConfig.BufferConfig(size_kb=65536)],
        data_sources=[TraceConfig.DataSource(config=source)],
    )


def test_connected_program_writes_a_graph_when_a_session_asks(
    oracle: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "producer.sock")
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", address)
    running = "len(__import__('stretto').profilers.heap.object_graph.ObjectGraph.instances()) == {}"
    with ServiceProcess(address) as service, LiveProgram(CONNECTED) as program:
        service.wait_for_producers(1)
        service.start("one", graph_config())
        service.start("other", graph_config(pid=[1]))
        program.wait_for(running.format(2))
        program.run("kept.append(Kept())")
        loaded = check_trace(oracle, service.stop("one"))
        other = check_trace(oracle, service.stop("other"))
        program.wait_for(running.format(0))
        assert program.run("len(kept)") == 2
    found = loaded.query(
        "select count(*), sum(reachable) from heap_graph_object o"
        " join heap_graph_class c on c.id = o.type_id where c.name = '__main__.Kept'"
    )
    assert found == [(2, 2)]
    assert other.query("select count(*) from heap_graph_object") == [(0,)]
