"""The importer's tables of profiles are equal to those of Perfetto's trace processor."""

from __future__ import annotations

from typing import Any

import pytest

from stretto.analysis import TraceProcessor
from tests.conformance.test_tables import THREAD, check, encode
from tests.support.oracle import Oracle

pytestmark = pytest.mark.once

CLOCKS = """
packet { clock_snapshot { clocks { clock_id: 6 timestamp: 1000000 }
  clocks { clock_id: 3 timestamp: 500000 } clocks { clock_id: 4 timestamp: 400000 } } }
"""
INTERNED = """
  interned_data {
    function_names { iid: 1 str: "main" } function_names { iid: 2 str: "leaf.work" }
    function_names { iid: 3 str: "" }
    mapping_paths { iid: 1 str: "usr" } mapping_paths { iid: 2 str: "app" }
    mapping_paths { iid: 3 str: "/home/x.py" } mapping_paths { iid: 4 str: "kernel" }
    build_ids { iid: 1 str: "\\001*" } build_ids { iid: 2 str: "ABCDEFABCDEFABCDEFABCDEFABCDEFABC" }
    mappings { iid: 1 path_string_ids: 1 path_string_ids: 2 build_id: 1 start: 4096 end: 8192
      exact_offset: 3 start_offset: 2 load_bias: 1 }
    mappings { iid: 2 path_string_ids: 3 }
    mappings { iid: 3 path_string_ids: 4 }
    mappings { iid: 4 path_string_ids: 1 path_string_ids: 99 build_id: 2 }
    mappings { iid: 5 build_id: 77 }
    mappings { iid: 6 path_string_ids: 3 }
    frames { iid: 1 function_name_id: 1 mapping_id: 1 rel_pc: 100 }
    frames { iid: 2 function_name_id: 2 mapping_id: 2 }
    frames { iid: 3 mapping_id: 3 rel_pc: 18446744073709551615 }
    frames { iid: 4 function_name_id: 3 mapping_id: 4 rel_pc: 100 }
    frames { iid: 5 mapping_id: 5 }
    frames { iid: 6 mapping_id: 66 }
    frames { iid: 7 mapping_id: 1 function_name_id: 88 }
    frames { iid: 8 function_name_id: 2 mapping_id: 6 }
    frames { iid: 9 function_name_id: 2 mapping_id: 1 rel_pc: 100 }
    callstacks { iid: 1 frame_ids: 1 frame_ids: 2 frame_ids: 3 }
    callstacks { iid: 2 frame_ids: 1 frame_ids: 4 }
    callstacks { iid: 3 }
    callstacks { iid: 4 frame_ids: 1 frame_ids: 55 }
    callstacks { iid: 5 frame_ids: 5 }
    callstacks { iid: 6 frame_ids: 6 }
    callstacks { iid: 7 frame_ids: 7 }
    callstacks { iid: 8 frame_ids: 1 frame_ids: 8 frame_ids: 9 }
  }
"""


def profile(defaults: str = "") -> str:
    """Return the packet that begins the state of a profiler's sequence."""
    return (
        f"packet {{ trusted_packet_sequence_id: 3 sequence_flags: 1 {INTERNED} "
        f"trace_packet_defaults {{ {defaults} }} }}\n"
    )


def sample(ts: int, fields: str, *, sequence: int = 3) -> str:
    return (
        f"packet {{ trusted_packet_sequence_id: {sequence} sequence_flags: 2 timestamp: {ts} "
        f"perf_sample {{ {fields} }} }}\n"
    )


PERF = profile(
    'perf_sample_defaults { timebase { counter: HW_INSTRUCTIONS } process_shard_count: 4 '
    "chosen_process_shard: 2 followers { counter: SW_PAGE_FAULTS } "
    'followers { tracepoint { name: "sched:switch" } } followers { raw_event { type: 8 '
    'config: 25 } } followers { name: "own" } followers { } }'
) + "".join(
    [
        sample(10, "cpu: 1 pid: 7 tid: 8 callstack_iid: 1 cpu_mode: MODE_USER timebase_count: 5 "
        "follower_counts: 6 follower_counts: 7 follower_counts: 8 follower_counts: 9"),
        sample(20, "cpu: 1 pid: 7 tid: 7 callstack_iid: 2 cpu_mode: MODE_KERNEL"),
        sample(30, "pid: 7 tid: 9 callstack_iid: 1 timebase_count: 18446744073709551615"),
        sample(40, "cpu: 2 pid: 17 callstack_iid: 1 unwind_error: UNWIND_ERROR_UNSUPPORTED"),
        *(sample(50, f"pid: 7 tid: 8 callstack_iid: {iid}") for iid in (3, 4, 5, 6, 7, 8, 44, 4)),
        sample(60, "cpu: 3 kernel_records_lost: 12"),
        sample(61, "cpu: 3 kernel_records_lost: 30"),
        sample(62, "producer_event { source_stop_reason: PROFILER_STOP_GUARDRAIL }"),
        sample(63, "pid: 7 tid: 8 sample_skipped_reason: PROFILER_SKIP_READ_STAGE"),
        sample(64, "pid: 7 tid: 8 sample_skipped_reason: PROFILER_SKIP_UNWIND_ENQUEUE"),
        sample(65, "pid: 7 tid: 8 sample_skipped_reason: PROFILER_SKIP_NOT_IN_SCOPE"),
        sample(66, "cpu_mode: MODE_GUEST_USER"),
        "packet { trusted_packet_sequence_id: 4 sequence_flags: 1 }\n",
        sample(70, "pid: 7 tid: 8", sequence=4),
        profile(),
        sample(80, "cpu: 1 pid: 7 tid: 8 callstack_iid: 1"),
    ]
)  # fmt: skip
SYMBOLS = (
    PERF
    + """
packet { timestamp: 90 module_symbols { path: "/usr/app" build_id: "\\001*"
  address_symbols { address: 100 lines { function_name: "inlined" source_file_name: "a.c"
    line_number: 3 } lines { function_name: "outer" source_file_name: "a.c" } }
  address_symbols { address: 101 lines { function_name: "nowhere" line_number: 5 } }
  address_symbols { address: 100 } } }
packet { timestamp: 91 module_symbols { path: "/home/x.py"
  address_symbols { lines { source_file_name: "" line_number: 9 } }
  address_symbols { lines { function_name: "again" } } } }
packet { timestamp: 92 module_symbols { path: "/usr/app" build_id: "\\001"
  address_symbols { address: 100 lines { function_name: "other" } } } }
"""
)
STREAM = (
    THREAD
    + profile()
    + """
packet { trusted_packet_sequence_id: 3 timestamp: 5
  thread_descriptor { pid: 20 tid: 21 thread_name: "streamed" reference_timestamp_us: 700 } }
packet { trusted_packet_sequence_id: 3 sequence_flags: 2
  streaming_profile_packet { callstack_iid: 1 callstack_iid: 2 callstack_iid: 3
    timestamp_delta_us: 10 timestamp_delta_us: 20 timestamp_delta_us: 30 process_priority: -3 } }
packet { trusted_packet_sequence_id: 3 sequence_flags: 2
  streaming_profile_packet { callstack_iid: 2 callstack_iid: 1 timestamp_delta_us: -5 } }
"""
)
SMAPS = """
packet { timestamp: 9 smaps_packet { pid: 30 entries { path: "/lib/x" size_kb: 1
  private_dirty_kb: 2 swap_kb: 3 file_name: "f" start_address: 4 module_timestamp: 5
  module_debugid: "d" module_debug_path: "p" protection_flags: 6 private_clean_resident_kb: 7
  shared_dirty_resident_kb: 8 shared_clean_resident_kb: 9 locked_kb: 10
  proportional_resident_kb: 11 } entries { path: "" } entries { size_kb: 5 } } }
"""


def heap(ts: int, dumps: str, more: str = "") -> str:
    """Return a packet with a heap profile; `dumps` are the fields of a process."""
    return (
        f"packet {{ trusted_packet_sequence_id: 3 sequence_flags: 2 timestamp: {ts} "
        f"profile_packet {{ process_dumps {{ pid: 40 timestamp: {400000 + ts} {dumps} }} {more} }} "
        "}\n"
    )


HEAP = (
    CLOCKS
    + profile()
    + heap(
        1000,
        'heap_name: "libc.malloc" samples { callstack_id: 1 self_allocated: 100 self_freed: 40 '
        "alloc_count: 10 free_count: 4 } samples { callstack_id: 2 self_max: 77 "
        "self_max_count: 7 } samples { callstack_id: 3 self_allocated: 9 } "
        "disconnected: true buffer_corrupted: true "
        "stats { heap_samples: 3 total_unwinding_time_us: 12 client_spinlock_blocked_us: 1 }",
        "continued: true",
    )
    + heap(1000, "samples { callstack_id: 1 self_allocated: 5 alloc_count: 1 }", "index: 1")
    + heap(
        2000,
        'heap_name: "libc.malloc" samples { callstack_id: 1 self_allocated: 150 self_freed: 140 '
        "alloc_count: 11 free_count: 12 } samples { callstack_id: 2 self_allocated: 300 "
        "alloc_count: 3 } orig_sampling_interval_bytes: 10 sampling_interval_bytes: 30 "
        "client_error: CLIENT_ERROR_HIT_TIMEOUT hit_guardrail: true rejected_concurrent: true",
        "index: 4",
    )
    + heap(
        3000,
        'heap_name: "com.android.art" samples { callstack_id: 1 self_allocated: 500 '
        "self_freed: 400 alloc_count: 50 free_count: 40 } samples { callstack_id: 2 "
        "self_max: 900 self_max_count: 90 } samples { callstack_id: 8 self_max: 900 } "
        "orig_sampling_interval_bytes: 10",
        "index: 5",
    )
    + profile()
    + heap(4000, "samples { callstack_id: 1 self_allocated: 30 alloc_count: 3 }", "index: 6")
)
OWN_TABLES = (
    CLOCKS
    + profile()
    + heap(
        1000,
        "samples { callstack_id: 1 self_allocated: 10 alloc_count: 1 } "
        "samples { callstack_id: 9 self_allocated: 20 alloc_count: 1 } "
        "samples { callstack_id: 8 self_allocated: 20 alloc_count: 1 }",
        'strings { iid: 1 str: "lib" } strings { iid: 2 str: "run" } strings { iid: 2 str: "x" } '
        "mappings { iid: 1 path_string_ids: 1 path_string_ids: 2 start: 10 end: 20 } "
        "mappings { iid: 2 path_string_ids: 9 build_id: 1 } mappings { iid: 3 build_id: 9 } "
        "frames { iid: 1 function_name_id: 2 mapping_id: 1 rel_pc: 5 } "
        "frames { iid: 2 mapping_id: 2 } frames { iid: 3 mapping_id: 3 } "
        "frames { iid: 4 mapping_id: 1 function_name_id: 8 } "
        "callstacks { iid: 1 frame_ids: 1 frame_ids: 2 } callstacks { iid: 9 frame_ids: 2 } "
        "callstacks { iid: 10 frame_ids: 3 } callstacks { iid: 11 }",
    )
    + heap(2000, "samples { callstack_id: 1 self_allocated: 40 alloc_count: 2 }", "index: 1")
    + heap(3000, "samples { callstack_id: 1 self_allocated: 60 alloc_count: 4 }", "index: 2")
)
TRACES = {
    "perf": PERF,
    "symbols": SYMBOLS,
    "stream": STREAM,
    "stream with clocks": CLOCKS + STREAM,
    "smaps": SMAPS,
    "heap": HEAP,
    "heap with its own tables": OWN_TABLES,
    "heap without a clock": HEAP.replace(CLOCKS, ""),
}


@pytest.mark.parametrize("name", TRACES)
def test_tables_of_profiles_written_by_hand_are_equal(name: str, oracle: type[Oracle]) -> None:
    check(encode(TRACES[name]))


VIEWS = (
    "perf_session",
    "perf_counter_track",
    "perf_sample",
    "stack_profile_callsite",
    "stack_profile_frame",
    "stack_profile_mapping",
    "stack_profile_symbol",
    "cpu_profile_stack_sample",
    "heap_profile_allocation",
    "profiler_smaps",
    "trace_bounds",
)


@pytest.mark.parametrize("name", TRACES)
def test_sql_on_profiles_gives_the_rows_of_the_trace_processor(
    name: str, oracle: type[Oracle]
) -> None:
    pytest.importorskip("duckdb")
    trace = encode(TRACES[name])
    judge = oracle(trace)
    with TraceProcessor(trace) as ours:
        for view in VIEWS:
            columns: Any = ours.query(f"select * from {view} limit 0").columns
            assert list(columns) == judge.table(f"select * from {view} limit 0")[0]
            wanted = [f'"{name}"' for name in columns if not name.endswith("arg_set_id")]
            query = f"select {', '.join(wanted)} from {view} order by 1"
            assert ours.query(query).fetchall() == judge.query(query), view


MODULES = {
    "stacks.cpu_profiling": ("cpu_profiling_samples", "cpu_profiling_summary_tree"),
    "linux.perf.samples": ("linux_perf_samples_summary_tree",),
    "android.memory.heap_profile.summary_tree": ("android_heap_profile_summary_tree",),
}


@pytest.mark.parametrize("name", ["symbols", "stream with clocks", "heap"])
@pytest.mark.parametrize("module", MODULES)
def test_modules_of_profiles_give_the_rows_of_the_trace_processor(
    module: str, name: str, oracle: type[Oracle]
) -> None:
    pytest.importorskip("duckdb")
    trace = encode(TRACES[name])
    judge = oracle(trace)
    with TraceProcessor(trace) as ours:
        for table in MODULES[module]:
            include = f"include perfetto module {module};"
            columns, _ = judge.table(f"{include} select * from {table}")
            query = f"{include} select {', '.join(columns)} from {table} order by id"
            assert ours.query(f"{include} select * from {table}").columns == tuple(columns)
            assert ours.query(query).fetchall() == judge.query(query)
