"""Modules of the standard library have the rows of Perfetto's trace processor, with both engines.

The trace is a random one of the kernel's events, as text: threads that run and wait, with slices,
frequencies, interrupts and counters of memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("sqlglot")

from stretto.analysis import TraceProcessor
from stretto.analysis.trace_processor import ENGINES
from tests.conformance.test_tables import encode
from tests.support import oracle

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(oracle.missing() is not None, reason=str(oracle.missing())),
]

IDLE = 0
THREADS = {IDLE: ("swapper", 0), 101: ("main", 100), 102: ("a", 100), 103: ("b", 100)}
THREADS |= {201: ("other", 200), 11: ("kworker", 11)}
MEMORY = ("mem.rss.anon", "mem.rss.file", "mem.rss.shmem", "mem.swap")


class Machine:
    """Writes the events of two CPUs."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._time = 1_000_000
        self._running = [IDLE, IDLE]
        self._open = dict.fromkeys(THREADS, 0)
        self.lines = ["# tracer: nop"]

    def step(self) -> None:
        """Write some microseconds of one CPU."""
        self._time += self._random.randint(3, 400)
        cpu = self._random.randint(0, 1)
        events = (self._switch, self._wake, self._slice, self._frequency, self._memory, self._irq)
        self._random.choices(events, (8, 3, 4, 1, 2, 2))[0](cpu)

    def _write(self, cpu: int, event: str) -> None:
        name, process = THREADS[tid := self._running[cpu]]
        time = f"{self._time // 1_000_000}.{self._time % 1_000_000:06d}"
        self.lines.append(f"{name:>16}-{tid:<5} ({process:>5}) [{cpu:03d}] .... {time}: {event}")

    def _waiting(self) -> list[int]:
        return [tid for tid in THREADS if tid != IDLE and tid not in self._running]

    def _switch(self, cpu: int) -> None:
        before, after = self._running[cpu], self._random.choice([IDLE, *self._waiting()])
        if before == after:
            return
        state = "R" if before == IDLE else self._random.choice(["S", "R", "D", "R+"])
        self._write(
            cpu,
            f"sched_switch: prev_comm={THREADS[before][0]} prev_pid={before} prev_prio=120 "
            f"prev_state={state} ==> next_comm={THREADS[after][0]} next_pid={after} next_prio=120",
        )
        self._running[cpu] = after

    def _wake(self, cpu: int) -> None:
        tid = self._random.choice(self._waiting())
        name = THREADS[tid][0]
        self._write(cpu, f"sched_waking: comm={name} pid={tid} prio=120 target_cpu=000")

    def _slice(self, cpu: int) -> None:
        process = THREADS[tid := self._running[cpu]][1]
        ends = self._open[tid] > 0 and self._random.random() < 0.5
        if process >= 100:
            begin = f"B|{process}|work {self._random.randint(0, 4)}"
            self._write(cpu, f"tracing_mark_write: {f'E|{process}' if ends else begin}")
            self._open[tid] += -1 if ends else 1

    def _frequency(self, cpu: int) -> None:
        self._write(cpu, f"cpu_frequency: state={self._random.randint(1, 3)}000000 cpu_id={cpu}")

    def _memory(self, cpu: int) -> None:
        process = THREADS[self._running[cpu]][1]
        name, value = self._random.choice(MEMORY), self._random.randint(1, 9) * 1000
        if process >= 100:
            self._write(cpu, f"tracing_mark_write: C|{process}|{name}|{value}")

    def _irq(self, cpu: int) -> None:
        self._write(cpu, "irq_handler_entry: irq=3 name=eth0")
        self._write(cpu, "softirq_entry: vec=1 [action=TIMER]")
        self._time += 2
        self._write(cpu, "softirq_exit: vec=1 [action=TIMER]")
        self._write(cpu, "irq_handler_exit: irq=3 ret=handled")


MODULES = """
counters.intervals linux.cpu.frequency linux.cpu.utilization.process linux.cpu.utilization.system
linux.cpu.utilization.thread linux.cpu.utilization.thread_cpu linux.irqs
linux.memory.high_watermark linux.memory.process linux.threads sched.latency sched.runnable
sched.states sched.thread_level_parallelism sched.time_in_state sched.with_context slices.cpu_time
slices.time_in_state
""".split()
INCLUDED = "".join(f"include perfetto module {module};\n" for module in MODULES)
HALF_SECOND = "1000000000, 500000000"
TABLES = f"""
counter_leading_intervals!((select * from counter))
cpu_frequency_counters
cpu_cycles
cpu_cycles_per_cpu
cpu_cycles_per_process
cpu_cycles_per_thread
cpu_cycles_per_thread_per_cpu
cpu_utilization_per_second
cpu_utilization_per_period(50000000)
cpu_process_utilization_per_second(1)
cpu_process_utilization_per_period(70000000, 2)
cpu_thread_utilization_per_second(1)
cpu_thread_utilization_per_period(70000000, 3)
memory_rss_and_swap_per_process
memory_rss_high_watermark_per_process
sched_active_cpu_count
sched_latency_for_running_interval
sched_percentage_of_time_in_state
sched_previous_runnable_on_thread
sched_runnable_thread_count
sched_time_in_state_and_cpu_for_thread_in_interval({HALF_SECOND}, 1)
sched_time_in_state_for_cpu_in_interval(1, {HALF_SECOND})
sched_time_in_state_for_thread
sched_time_in_state_for_thread_in_interval({HALF_SECOND}, 1)
sched_uninterruptible_sleep_thread_count
sched_with_thread_process
thread_slice_cpu_time
thread_slice_time_in_state
(select distinct state, io, sched_state_io_to_human_readable_string(state, io) as text \
from thread_state, \
(select 1 as io union all select 0 union all select null))
""".strip().splitlines()
INTERRUPTS = """
packet { trusted_packet_sequence_id: 9 timestamp: 5 process_tree {
  processes { pid: 1 ppid: 0 cmdline: "init" } processes { pid: 2 ppid: 0 cmdline: "kthreadd" }
  processes { pid: 11 ppid: 2 cmdline: "kworker" } processes { pid: 50 ppid: 11 cmdline: "no" }
  threads { tid: 12 tgid: 11 } } }
packet { trusted_packet_sequence_id: 9 ftrace_events { cpu: 1
  event { timestamp: 100 pid: 50 irq_handler_entry { irq: 3 name: "eth0" } }
  event { timestamp: 110 pid: 50 irq_handler_exit { irq: 3 ret: 1 } }
  event { timestamp: 120 pid: 50 softirq_entry { vec: 1 } }
  event { timestamp: 150 pid: 50 softirq_exit { vec: 1 } } } }
"""


@pytest.fixture(scope="module")
def trace() -> bytes:
    machine = Machine(seed=7)
    for _ in range(1_500):
        machine.step()
    return ("\n".join(machine.lines) + "\n").encode()


@pytest.fixture(scope="module")
def expected(trace: bytes) -> oracle.Oracle:
    processor = oracle.Oracle(trace)
    processor.query(INCLUDED)
    return processor


@pytest.fixture(scope="module", params=ENGINES)
def found(request: pytest.FixtureRequest, trace: bytes) -> Iterator[TraceProcessor]:
    with TraceProcessor(trace, engine=request.param) as processor:
        processor.query(INCLUDED)
        yield processor


def rows(values: list[tuple[Any, ...]]) -> Counter[str]:
    return Counter(
        repr([float(f"{v:.12g}") if isinstance(v, float) else v for v in row]) for row in values
    )


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table[:50])
def test_table_has_the_rows_of_the_trace_processor(
    table: str, expected: oracle.Oracle, found: TraceProcessor
) -> None:
    columns, wanted = expected.table(f"select * from {table}")
    result = found.query(f"select * from {table}")
    assert list(result.columns) == columns
    assert rows(result.fetchall()) == rows(wanted)
    assert wanted


@pytest.mark.parametrize("engine", ENGINES)
def test_interrupts_and_threads_of_the_kernel_are_equal(engine: str) -> None:
    trace = encode(INTERRUPTS)
    expected = oracle.Oracle(trace)
    expected.query(INCLUDED)
    with TraceProcessor(trace, engine=engine) as found:
        found.query(INCLUDED)
        for table in ("linux_hard_irqs", "linux_soft_irqs", "linux_irqs", "linux_kernel_threads"):
            columns, wanted = expected.table(f"select * from {table}")
            result = found.query(f"select * from {table}")
            assert (list(result.columns), rows(result.fetchall())) == (columns, rows(wanted)), table
            assert wanted, table
