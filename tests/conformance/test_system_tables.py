"""Tables of kernel events, machine counters and the service equal those of the trace processor."""

from __future__ import annotations

import pytest

from stretto.analysis import TraceProcessor
from stretto.protos.trace import SysStats
from tests.conformance.tables import compare
from tests.support.oracle import Oracle

text_format = pytest.importorskip("google.protobuf.text_format")
perfetto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

pytestmark = pytest.mark.once

SYSTEM = """
packet { system_info { page_size: 4096 timezone_off_mins: 60 utsname { sysname: "Linux"
  version: "#1" release: "6.1.0-x" machine: "x86_64" } } }
packet { cpu_info {
  cpus { processor: "p" capacity: 512 frequencies: 100 frequencies: 200
    arm_identifier { implementer: 65 part: 3 } }
  cpus { capacity: 1024 } cpus { capacity: 512 } } }
"""


def event(ts: int, pid: int, content: str) -> str:
    return f"event {{ timestamp: {ts} pid: {pid} {content} }}\n"


def bundle(cpu: int, *contents: str) -> str:
    return (
        "packet { trusted_packet_sequence_id: 2 sequence_flags: 1 "
        f"ftrace_events {{ cpu: {cpu} {' '.join(contents)} }} }}\n"
    )


def switch(ts: int, prev: int, state: int, next_: int) -> str:
    return event(
        ts,
        prev,
        f'sched_switch {{ prev_comm: "t{prev}" prev_pid: {prev} prev_prio: 120 '
        f'prev_state: {state} next_comm: "t{next_}" next_pid: {next_} next_prio: 110 }}',
    )


def waking(ts: int, pid: int, wakee: int) -> str:
    return event(ts, pid, f'sched_waking {{ comm: "t{wakee}" pid: {wakee} target_cpu: 1 }}')


def text(ts: int, pid: int, buffer: str) -> str:
    return event(ts, pid, f'print {{ ip: 1 buf: "{buffer}" }}')


SWITCHES = [
    switch(100, 10, 1, 20),
    waking(120, 20, 10),
    waking(130, 20, 10),
    switch(150, 20, 256, 10),
    switch(160, 10, 2, 0),
    event(165, 0, "sched_blocked_reason { pid: 10 caller: 7 io_wait: 1 }"),
    waking(170, 0, 10),
    switch(180, 0, 0, 10),
    switch(190, 99, 0x200, 30),
    switch(195, 30, 3, 31),
]
SCHED = (
    SYSTEM
    + "packet { trusted_packet_sequence_id: 2 sequence_flags: 1 interned_data { "
    + 'kernel_symbols { iid: 7 str: "io_schedule" } } }\n'
    + bundle(0, *SWITCHES).replace("sequence_flags: 1", "sequence_flags: 2")
    + bundle(3, switch(105, 40, 1, 41), waking(121, 41, 20), "lost_events: true")
)
OLD_KERNEL = bundle(
    0, *(switch(100 + i, 1 + i, 1 << i, 2 + i) for i in range(13)), switch(200, 14, 1026, 1)
)
COMPACT = bundle(
    1,
    "compact_sched { intern_table: 'a' intern_table: 'b' "
    + " ".join(f"switch_timestamp: {ts}" for ts in (100, 10, 10, 10))
    + " ".join(f" switch_prev_state: {state}" for state in (1, 2, 0, 130))
    + " ".join(f" switch_next_pid: {pid}" for pid in (5, 6, 5, 0))
    + " ".join(f" switch_next_prio: {priority}" for priority in (120, 110, 120, 100))
    + " ".join(f" switch_next_comm_index: {index}" for index in (0, 1, 0, 1))
    + " waking_timestamp: 90 waking_timestamp: 25 waking_timestamp: 3"
    + " waking_pid: 7 waking_pid: 6 waking_pid: 7"
    + " waking_target_cpu: 0 waking_target_cpu: 0 waking_target_cpu: 0"
    + " waking_prio: 120 waking_prio: 120 waking_prio: 120"
    + " waking_comm_index: 0 waking_comm_index: 1 waking_comm_index: 1"
    + " waking_common_flags: 1 waking_common_flags: 8 waking_common_flags: 1 }",
) + bundle(2, "compact_sched { switch_timestamp: 5 }")
TASKS = bundle(
    0,
    event(10, 5, 'task_newtask { pid: 6 comm: "thread" clone_flags: 65536 }'),
    event(15, 5, 'task_newtask { pid: 0 comm: "swapper/1" }'),
    event(20, 5, 'task_newtask { pid: 7 comm: "child" clone_flags: 17 }'),
    event(22, 7, 'task_newtask { pid: 8 comm: "grandchild" clone_flags: 65536 }'),
    event(25, 7, 'task_rename { pid: 7 oldcomm: "child" newcomm: "renamed" }'),
    text(30, 6, "B|5|work\\n"),
    text(40, 6, "E|5"),
    event(50, 0, 'sched_process_free { comm: "renamed" pid: 7 prio: 120 }'),
    event(60, 7, 'task_rename { pid: 7 newcomm: "later" }'),
    event(61, 9, 'task_newtask { pid: 7 comm: "again" clone_flags: 17 }'),
    event(62, 9, "signal_generate { pid: 7 sig: 9 }"),
    event(63, 7, "signal_deliver { sig: 9 }"),
    "",
) + (
    "packet { timestamp: 80 process_tree { processes { pid: 9 ppid: 1 cmdline: 'shell' } } }\n"
    "packet { timestamp: 90 process_stats { processes { pid: 9 vm_rss_kb: 5 chrome_peak_resident_"
    "set_kb: 3 threads { tid: 91 } fds { fd: 3 path: '/dev/null' } } } }\n"
)
CPU_EVENTS = bundle(
    1,
    event(10, 0, "cpu_frequency { state: 2000 cpu_id: 1 }"),
    event(11, 0, "cpu_idle { state: 4294967295 cpu_id: 0 }"),
    event(12, 0, "cpu_frequency_limits { min_freq: 100 max_freq: 300 cpu_id: 1 }"),
    event(13, 0, 'clock_set_rate { name: "gpu" state: 5 cpu_id: 0 }'),
    event(14, 0, 'clock_disable { name: "gpu" state: 0 cpu_id: 0 }'),
    event(20, 3, 'irq_handler_entry { irq: 1 name: "eth0" }'),
    event(21, 3, "softirq_entry { vec: 3 }"),
    event(22, 3, "softirq_exit { vec: 3 }"),
    event(23, 3, "irq_handler_exit { irq: 1 ret: 1 }"),
    event(24, 3, "local_timer_entry { vector: 1 }"),
    event(25, 3, "local_timer_exit { vector: 1 }"),
    event(26, 3, "hrtimer_expire_entry { hrtimer: 1 function: 255 }"),
    event(27, 3, "hrtimer_expire_exit { hrtimer: 1 }"),
    event(30, 4, "workqueue_execute_start { work: 1 function: 171 }"),
    event(31, 4, "workqueue_execute_end { work: 1 function: 171 }"),
    event(32, 4, "block_io_start { dev: 8 sector: 77 }"),
    event(33, 4, "block_io_done { dev: 8 sector: 77 }"),
    event(34, 12, "softirq_raise { vec: 1 }"),
    "event { timestamp: 35 pid: 13 }",
)
ATRACE = bundle(
    0,
    *(
        text(10 + i, 50 + i % 2, line)
        for i, line in enumerate(
            [
                "B|5|outer",
                "B|6|",
                "S|5|async|1",
                "S|5|async|1",
                "S|5|async|2",
                "F|5|async|1",
                "F|5|async|2",
                "G|5|lane|a|1",
                "G|5|lane|b|2",
                "H|5|lane|1",
                "H|5|lane|x|2",
                "N|5|lane|mark",
                "N|5|lane|mark",
                "C|5|queue|-3",
                "C|5|queue|4|category",
                "I|5|instant",
                "E|5",
                "E",
                "other text",
                "S|5|async|",
                "C|5|queue|1.5",
                "trace_event_clock_sync: parent_ts=1",
            ]
        )
    ),
)
STATS = "".join(
    f"packet {{ ftrace_stats {{ phase: {phase} "
    f"cpu_stats {{ cpu: 1 entries: {n} overrun: {n} bytes_read: {2 * n} read_events: 9 "
    f"oldest_event_ts: {n}.5 now_ts: 7 dropped_events: {n} }} "
    "unknown_ftrace_events: 'x/y' failed_ftrace_events: 'p/q' } }\n"
    for phase, n in (("START_OF_TRACE", 5), ("END_OF_TRACE", 8))
)
EARLY = (
    "packet { timestamp: 90 service_event { tracing_started: true } }\n"
    + bundle(0, "previous_bundle_end_timestamp: 105", switch(80, 1, 1, 2), switch(110, 2, 1, 3))
    + bundle(1, "previous_bundle_end_timestamp: 95", switch(100, 7, 1, 8), switch(120, 8, 1, 9))
)
OTHER_CLOCK = bundle(
    0,
    "ftrace_clock: FTRACE_CLOCK_GLOBAL ftrace_timestamp: 50 boot_timestamp: 1050",
    switch(20, 1, 1, 2),
)


SERVICE = (
    """
packet { trace_config { unique_session_name: "mine" write_into_file: true
  buffers { size_kb: 1 } buffers { size_kb: 1 fill_policy: DISCARD } } }
packet { timestamp: 5 service_event { slow_starting_data_sources { data_source {
  producer_name: "p" data_source_name: "d" } } } }
packet { timestamp: 6 service_event { clone_started: true } }
packet { timestamp: 7 service_event { buffer_cloned: 1 } }
packet { timestamp: 20 trigger { trigger_name: "first" producer_name: "p"
  trusted_producer_uid: 3 } }
packet { timestamp: 30 trigger { trigger_name: "second" } }
packet { timestamp: 40 clone_snapshot_trigger { trigger_name: "clone" } }
"""
    + "packet { trusted_packet_sequence_id: 4 sequence_flags: 2 track_event { } }\n" * 2
    + "packet { trusted_packet_sequence_id: 5 previous_packet_dropped: 1 }\n" * 3
    + """
packet { trace_stats { writer_stats { sequence_id: 4 buffer: 1 }
  writer_stats { sequence_id: 5 buffer: 1 } writer_stats { sequence_id: 9 buffer: 2 }
  buffer_stats { bytes_written: 7 } } }
"""
)


def sys_stats(ts: int, scale: int) -> str:
    disk = " ".join(
        f"{field}: {scale * (number + 1)}"
        for number, field in enumerate(
            [
                "read_sectors",
                "read_time_ms",
                "write_sectors",
                "write_time_ms",
                "discard_sectors",
                "flush_count",
                "flush_time_ms",
            ]
        )
    )
    keys = range(1, 189)
    return (
        f"packet {{ timestamp: {ts} sys_stats {{ "
        + " ".join(f"vmstat {{ key: {key} value: {key * scale} }}" for key in keys)
        + " ".join(f" meminfo {{ key: {key} value: {key * scale} }}" for key in range(1, 39))
        + f" cpu_stat {{ cpu_id: 1 user_ns: {scale} steal_ns: 2 }} cpu_stat {{ user_ns: 1 }}"
        f" num_forks: 3 num_irq_total: 4 num_softirq_total: 5 num_irq {{ irq: 7 count: {scale} }}"
        " num_softirq { irq: 1 count: 2 } devfreq { key: 'gpu' value: 5 } cpufreq_khz: 10"
        " cpufreq_khz: 20 gpufreq_mhz: 30 buddy_info { node: '0' zone: 'DMA' order_pages: 1"
        f" order_pages: 2 }} disk_stat {{ device_name: 'sda' {disk} }}"
        " cpuidle_state { cpu_id: 1 cpuidle_state_entry { state: 'C1' duration_us: 9 } }"
        " thermal_zone { name: 'z' temp: 40 type: 'cpu' } psi { resource: PSI_RESOURCE_IO_FULL"
        " total_ns: 8 } } }\n"
    )


MACHINE = sys_stats(10, 1) + SYSTEM + sys_stats(20, 2048)


def encode(source: str) -> bytes:
    return bytes(text_format.Parse(source, perfetto.Trace()).SerializeToString())


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(SCHED, id="switches"),
        pytest.param(OLD_KERNEL, id="old kernel"),
        pytest.param(COMPACT, id="compact switches"),
        pytest.param(TASKS, id="tasks"),
        pytest.param(CPU_EVENTS, id="CPU events"),
        pytest.param(ATRACE, id="atrace"),
        pytest.param(STATS, id="statistics"),
        pytest.param(EARLY, id="early events"),
        pytest.param(OTHER_CLOCK, id="other clock"),
        pytest.param(MACHINE, id="machine"),
        pytest.param(SERVICE, id="service"),
    ],
)
def test_tables_of_the_system_are_equal(source: str, oracle: type[Oracle]) -> None:
    different = [str(result) for result in compare(encode(source)) if not result.is_equal]
    assert not different, "\n".join(different)


def test_machine_packet_has_every_field_of_sys_stats_that_the_importer_reads() -> None:
    names = set(SysStats.LAYOUT.by_name) - {"collection_end_timestamp", "slab_info"}
    assert not {name for name in names if f"{name}:" not in MACHINE and f"{name} {{" not in MACHINE}


@pytest.mark.parametrize("source", [SCHED, CPU_EVENTS])
def test_sql_views_of_the_kernel_are_equal(source: str, oracle: type[Oracle]) -> None:
    pytest.importorskip("duckdb")
    trace = encode(source)
    judge = oracle(trace)
    with TraceProcessor(trace) as ours:
        for view in (
            "sched",
            "sched_slice",
            "thread_state",
            "spurious_sched_wakeup",
            "cpu",
            "cpu_available_frequencies",
            "cpu_track",
            "cpu_counter_track",
        ):
            columns = ours.query(f"select * from {view} limit 0").columns
            wanted = ", ".join(c for c in columns if not c.endswith("arg_set_id"))
            query = f"select {wanted} from {view} order by 1"
            assert ours.query(query).fetchall() == judge.query(query), view


def test_bounds_include_scheduling(oracle: type[Oracle]) -> None:
    pytest.importorskip("duckdb")
    query = "select start_ts, end_ts from trace_bounds"
    with TraceProcessor(encode(SCHED)) as ours:
        assert ours.query(query).fetchall() == oracle(encode(SCHED)).query(query)
