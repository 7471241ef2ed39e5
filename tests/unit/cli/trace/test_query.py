from __future__ import annotations

from stretto.cli.trace.query import describe, shortened, table
from stretto.protos.config import DataSourceDescriptor
from stretto.protos.trace import TracingServiceState


def test_machines_are_shown_if_there_are_several() -> None:
    producer = TracingServiceState.Producer(id=1, name="x", pid=2)
    one = TracingServiceState(producers=[producer])
    assert "MACHINE" not in describe(one)
    producer.machine_id = 3
    producer.machine_name = "far"
    both = describe(TracingServiceState(producers=[producer]))
    assert "MACHINE" in both
    assert "far" in both


def test_control_characters_in_a_table_are_replaced() -> None:
    assert table([["a", "b"], ["\x1b[2Jx", "c"]]) == "a      b\n?[2Jx  c\n"


def test_long_category_lists_are_truncated() -> None:
    names = [f"n{number}" for number in range(50)]
    assert shortened(names, all_names=False).endswith("n39, … 10 more, see --long")
    assert shortened(names, all_names=True).endswith("n49")


def test_data_source_of_an_unknown_producer_is_shown_with_the_producers_id() -> None:
    source = TracingServiceState.DataSource(
        ds_descriptor=DataSourceDescriptor(name="s"), producer_id=9
    )
    assert "s     (9)" in describe(TracingServiceState(data_sources=[source]))
