"""`stretto probes` beside Perfetto's `traced_probes` v56: the same session, the same packets."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from stretto.protos.config import (
    DataSourceConfig,
    ProcessStatsConfig,
    SysStatsConfig,
    SystemInfoConfig,
    TraceConfig,
)
from stretto.protos.trace import ProcessStats, SysStats, Trace, TracePacket
from tests.conformance.differential.services import ours, perfetto
from tests.support import newer_debian
from tests.support.polling import wait_until
from tests.support.system_consumer import SystemConsumer
from tests.support.traced import Process, ProcessGroup, closing_all

# Perfetto's producer resets the top instance of tracefs when it starts, so only one runs at a time.
pytestmark = [pytest.mark.thorough, pytest.mark.once, pytest.mark.xdist_group("tracefs")]

GROUPS = [name for name in SysStatsConfig.LAYOUT.by_name if name.endswith("_period_ms")]
POLL_MS = 100
SOURCES = [
    DataSourceConfig(
        name="linux.sys_stats", sys_stats_config=SysStatsConfig(**dict.fromkeys(GROUPS, POLL_MS))
    ),
    DataSourceConfig(
        name="linux.process_stats",
        process_stats_config=ProcessStatsConfig(
            scan_all_processes_on_start=True,
            record_thread_names=True,
            proc_stats_poll_ms=POLL_MS,
            record_process_age=True,
            record_process_runtime=True,
            scan_smaps_rollup=True,
            resolve_process_fds=True,
            skip_main_thread_message=True,  # v56 has no such message.
        ),
    ),
    DataSourceConfig(name="linux.system_info", system_info_config=SystemInfoConfig(irq_names=True)),
]
CONFIG = TraceConfig(
    buffers=[TraceConfig.BufferConfig(size_kb=65536)],
    data_sources=[TraceConfig.DataSource(config=source) for source in SOURCES],
)
TABLES = (
    "select distinct name, unit from counter_track t where type not like '%irq%'",
    "select pid, name, cmdline from process where pid in (1, {pid})",
    "select distinct t.name from process_counter_track t join process using (upid) where pid={pid}",
)


class Session:
    """The packets of both producers, and the process id of a process that did nothing."""

    def __init__(self, trace: Trace, probes: int, pid: int) -> None:
        fields = ("sys_stats", "process_tree", "process_stats", "cpu_info", "interrupt_info")
        self.trace = trace
        self.pid = pid
        self.all = [p for p in trace.packet if any(p.has(field) for field in fields)]
        self.ours = [p for p in self.all if p.trusted_pid == probes]
        self.theirs = [p for p in self.all if p.trusted_pid != probes]

    def values(self, field: str) -> tuple[list[Any], list[Any]]:
        """Return our producer's messages of a field, and those of Perfetto's producer."""
        ours, theirs = (
            [getattr(packet, field) for packet in packets if packet.has(field)]
            for packets in (self.ours, self.theirs)
        )
        return ours, theirs

    def without(self, packets: list[TracePacket]) -> bytes:
        left_out = set(map(id, packets))
        kept = [packet for packet in self.trace.packet if id(packet) not in left_out]
        return Trace(packet=kept).encode()


def offers_all(consumer: SystemConsumer) -> bool:
    names = [s.ds_descriptor.name for s in consumer.state().data_sources if s.ds_descriptor]
    return all(names.count(source.name) == 2 for source in SOURCES)


@pytest.fixture(scope="module", params=["stretto", "v56"])
def session(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    if (reason := newer_debian.missing()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("s")
    run = {"stretto": ours, "v56": perfetto}[request.param]
    with run(folder) as service, closing_all() as all_:
        names = ("PERFETTO_PRODUCER_SOCK_NAME", "PERFETTO_CONSUMER_SOCK_NAME")
        environment = {**os.environ, **dict(zip(names, service.sockets, strict=True))}
        quiet = Process(sys.executable, "-c", "input()")
        all_.append(quiet)
        quiet.stop()
        native = newer_debian.command("traced_probes", folder)
        all_.append(ProcessGroup(*native, env=environment, stderr=subprocess.DEVNULL))
        probes = Process(
            sys.executable, "-m", "stretto", "probes", env=environment, stderr=subprocess.DEVNULL
        )
        all_.append(probes)
        consumer = SystemConsumer(service.sockets[1])
        all_.append(consumer)
        wait_until(lambda: offers_all(consumer), "both producers")
        consumer.enable(CONFIG)
        consumer.process_events(2000)  # Both take their samples.
        assert consumer.flush(60_000)
        consumer.stop()
        yield Session(Trace.decode(consumer.read()), probes.pid, quiet.pid)


def test_both_producers_write_the_same_fields_of_sys_stats(session: Session) -> None:
    def shape(stats: SysStats) -> dict[str, set[str]]:
        return {
            name: {field for row in rows for field in vars(row)}
            if hasattr(rows, "append")
            else set()
            for name, rows in vars(stats).items()
            if name not in ("cpufreq_khz",)
        }

    mine, theirs = session.values("sys_stats")
    assert shape(mine[0]) == shape(theirs[0])
    assert len(mine[0].cpufreq_khz) == len(theirs[0].cpufreq_khz)


KEYS: dict[str, Callable[[Any], object]] = {
    "meminfo": lambda row: row.key,
    "vmstat": lambda row: row.key,
    "cpu_stat": lambda row: row.cpu_id,
    "num_softirq": lambda row: row.irq,
    "buddy_info": lambda row: (row.node, row.zone, len(row.order_pages)),
    "psi": lambda row: row.resource,
    "thermal_zone": lambda row: (row.name, row.type),
}


@pytest.mark.parametrize("group", KEYS)
def test_both_producers_write_the_same_rows_in_the_same_order(session: Session, group: str) -> None:
    mine, theirs = (
        [KEYS[group](r) for r in getattr(s[0], group)] for s in session.values("sys_stats")
    )
    assert mine == theirs


def test_both_producers_write_the_same_idle_states(session: Session) -> None:
    def states(stats: SysStats) -> dict[int, set[str]]:  # Perfetto's order is the folder's.
        states = {
            row.cpu_id: {each.state for each in row.cpuidle_state_entry}
            for row in stats.cpuidle_state
        }
        # Perfetto reads no further CPU after one without idle states.
        return {cpu: names for cpu, names in states.items() if names}

    mine, theirs = session.values("sys_stats")
    assert states(mine[0]) == states(theirs[0])


COUNTS: dict[str, Callable[[SysStats], dict[object, int]]] = {
    "forks": lambda s: {0: s.num_forks},
    "interrupts": lambda s: {0: s.num_irq_total},
    "soft interrupts": lambda s: {row.irq: row.count for row in s.num_softirq},
    "CPU times": lambda s: {row.cpu_id: row.user_ns for row in s.cpu_stat},
    "pressure": lambda s: {row.resource: row.total_ns for row in s.psi},
    "disks": lambda s: {row.device_name: row.write_sectors for row in s.disk_stat},
}


@pytest.mark.parametrize("counts", COUNTS)
def test_counts_also_grow_between_samples_of_both_producers(session: Session, counts: str) -> None:
    samples = [packet for packet in session.all if packet.sys_stats is not None]
    samples.sort(key=lambda packet: packet.timestamp)
    compared = 0
    for before, after in pairwise(samples):
        assert before.sys_stats is not None
        assert after.sys_stats is not None
        if before.sys_stats.collection_end_timestamp <= after.timestamp:
            compared += before.trusted_pid != after.trusted_pid
            old, new = COUNTS[counts](before.sys_stats), COUNTS[counts](after.sys_stats)
            assert all(old[key] <= new[key] for key in old.keys() & new.keys())
    assert compared


def test_both_producers_write_the_same_constants(session: Session) -> None:
    mine, theirs = (
        {row.key: row.value for row in s[0].meminfo} for s in session.values("sys_stats")
    )
    assert mine[1] == theirs[1]


def test_both_producers_write_the_same_system_info_except_the_processors_name(
    session: Session,
) -> None:
    mine, theirs = session.values("cpu_info")
    for cpu in [*mine[0].cpus, *theirs[0].cpus]:
        cpu.processor = ""  # Perfetto writes this name on ARM only.
    assert mine == theirs
    mine, theirs = session.values("interrupt_info")
    assert mine == theirs


def test_both_producers_write_the_same_process_trees(session: Session) -> None:
    mine, theirs = (
        {process.pid: process for tree in trees for process in tree.processes}
        for trees in session.values("process_tree")
    )
    assert mine[session.pid] == theirs[session.pid]
    assert mine[1] == theirs[1]
    kernel_threads = {pid for pid, process in theirs.items() if process.is_kthread} & mine.keys()
    for pid in kernel_threads:
        for process in (mine[pid], theirs[pid]):
            process.clear("cmdline")  # The kernel names its workers by their present work.
        assert mine[pid] == theirs[pid]
    assert kernel_threads


def test_both_producers_write_the_same_threads(session: Session) -> None:
    mine, theirs = (
        {thread.tid: thread for tree in trees for thread in tree.threads if thread.tgid == 1}
        for trees in session.values("process_tree")
    )
    assert all(mine[tid] == theirs[tid] for tid in mine.keys() & theirs.keys())


def test_both_producers_write_the_same_values_of_a_stopped_process(session: Session) -> None:
    def values(stats: list[ProcessStats]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in stats:
            for process in each.processes:
                if process.pid == session.pid:
                    found |= vars(process)
        # The proportional part of shared memory depends on other processes.
        return {name: value for name, value in found.items() if "pss" not in name}

    mine, theirs = session.values("process_stats")
    assert values(mine) == values(theirs)
    assert len(values(mine)) > 10


def test_trace_processor_makes_the_same_tables_of_both(session: Session, oracle: Any) -> None:
    mine = oracle(session.without(session.theirs))
    theirs = oracle(session.without(session.ours))
    assert mine.errors() == theirs.errors() == []
    for query in TABLES:
        rows = [set(each.query(query.format(pid=session.pid))) for each in (mine, theirs)]
        assert rows[0] == rows[1]
        assert rows[0]
