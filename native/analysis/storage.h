/* Storage: the tables of a trace, with Perfetto's names and columns.
 *
 * A row's number is its `id`; only that of the table cpu is a number of its own
 * (cpus.h).
 * References to rows (utid, track_id, parent_id, …) are row numbers too.  Columns that Perfetto derives from others (`cat`,
 * `slice_id`, display_value of args) are left to the views of SQL.
 */
#pragma once

#include "table.h"

/* X(table, columns) with C(column, type). */
#define ST_TABLES(X, C)                                                        \
  X(SLICE, slice,                                                              \
    C(SLICE, id, ROW) C(SLICE, ts, INT64) C(SLICE, dur, INT64)                 \
        C(SLICE, track_id, INT32) C(SLICE, category, TEXT)                     \
            C(SLICE, name, TEXT) C(SLICE, depth, INT32)                        \
                C(SLICE, parent_id, INT32) C(SLICE, arg_set_id, INT32)         \
                    C(SLICE, thread_ts, INT64) C(SLICE, thread_dur, INT64)     \
                        C(SLICE, thread_instruction_count, INT64)              \
                            C(SLICE, thread_instruction_delta, INT64))         \
  X(TRACK, __intrinsic_track,                                                  \
    C(TRACK, id, ROW) C(TRACK, name, TEXT) C(TRACK, type, TEXT)                \
        C(TRACK, dimension_arg_set_id, INT32) C(TRACK, parent_id, INT32)       \
            C(TRACK, source_arg_set_id, INT32) C(TRACK, machine_id, INT32)     \
                C(TRACK, track_group_id, INT32) C(TRACK, event_type, TEXT)     \
                    C(TRACK, counter_unit, TEXT) C(TRACK, utid, INT32)         \
                        C(TRACK, upid, INT32))                                 \
  X(COUNTER, counter,                                                          \
    C(COUNTER, id, ROW) C(COUNTER, ts, INT64) C(COUNTER, track_id, INT32)      \
        C(COUNTER, value, DOUBLE) C(COUNTER, arg_set_id, INT32))               \
  X(THREAD, thread,                                                            \
    C(THREAD, utid, ROW) C(THREAD, id, ROW) C(THREAD, tid, INT64)              \
        C(THREAD, name, TEXT) C(THREAD, start_ts, INT64)                       \
            C(THREAD, end_ts, INT64) C(THREAD, upid, INT32)                    \
                C(THREAD, is_main_thread, INT32) C(THREAD, is_idle, INT32)     \
                    C(THREAD, machine_id, INT32))                              \
  X(PROCESS, process,                                                          \
    C(PROCESS, upid, ROW) C(PROCESS, id, ROW) C(PROCESS, pid, INT64)           \
        C(PROCESS, name, TEXT) C(PROCESS, start_ts, INT64) C(                  \
            PROCESS, end_ts, INT64) C(PROCESS, parent_upid, INT32)             \
            C(PROCESS, uid, INT64) C(PROCESS, android_appid, INT64) C(         \
                PROCESS, android_user_id, INT64) C(PROCESS, cmdline, TEXT)     \
                C(PROCESS, arg_set_id, INT32) C(PROCESS, machine_id, INT32))   \
  X(ARGS, __intrinsic_args,                                                    \
    C(ARGS, id, ROW) C(ARGS, arg_set_id, INT32) C(ARGS, flat_key, TEXT) C(     \
        ARGS, key, TEXT) C(ARGS, int_value, INT64) C(ARGS, string_value, TEXT) \
        C(ARGS, real_value, DOUBLE) C(ARGS, value_type, TEXT))                 \
  X(FLOW, flow,                                                                \
    C(FLOW, id, ROW) C(FLOW, slice_out, INT32) C(FLOW, slice_in, INT32)        \
        C(FLOW, trace_id, INT64) C(FLOW, arg_set_id, INT32))                   \
  X(LOG, android_logs,                                                         \
    C(LOG, id, ROW) C(LOG, ts, INT64) C(LOG, utid, INT32) C(LOG, prio, INT32)  \
        C(LOG, tag, TEXT) C(LOG, msg, TEXT))                                   \
  X(CLOCK, clock_snapshot,                                                     \
    C(CLOCK, id, ROW) C(CLOCK, ts, INT64) C(CLOCK, clock_id, INT64)            \
        C(CLOCK, clock_name, TEXT) C(CLOCK, clock_value, INT64)                \
            C(CLOCK, snapshot_id, INT32) C(CLOCK, machine_id, INT32))          \
  X(SCHED, __intrinsic_sched_slice,                                            \
    C(SCHED, id, ROW) C(SCHED, ts, INT64) C(SCHED, dur, INT64)                 \
        C(SCHED, utid, INT32) C(SCHED, end_state, TEXT)                        \
            C(SCHED, priority, INT32) C(SCHED, ucpu, INT32))                   \
  X(STATE, __intrinsic_thread_state,                                           \
    C(STATE, id, ROW) C(STATE, ts, INT64) C(STATE, dur, INT64)                 \
        C(STATE, utid, INT32) C(STATE, state, TEXT) C(STATE, io_wait, INT32)   \
            C(STATE, blocked_function, TEXT) C(STATE, waker_utid, INT32)       \
                C(STATE, waker_id, INT32) C(STATE, irq_context, INT32)         \
                    C(STATE, ucpu, INT32))                                     \
  X(SPURIOUS, spurious_sched_wakeup,                                           \
    C(SPURIOUS, id, ROW) C(SPURIOUS, ts, INT64)                                \
        C(SPURIOUS, thread_state_id, INT32) C(SPURIOUS, irq_context, INT32)    \
            C(SPURIOUS, utid, INT32) C(SPURIOUS, waker_utid, INT32))           \
  X(CPU, cpu,                                                                  \
    C(CPU, id, INT32) C(CPU, ucpu, INT32) C(CPU, cpu, INT32)                   \
        C(CPU, cluster_id, INT32) C(CPU, processor, TEXT)                      \
            C(CPU, machine_id, INT32) C(CPU, capacity, INT64)                  \
                C(CPU, arg_set_id, INT32))                                     \
  X(CPU_FREQ, __intrinsic_cpu_freq,                                            \
    C(CPU_FREQ, id, ROW) C(CPU_FREQ, ucpu, INT32) C(CPU_FREQ, freq, INT64))    \
  X(FD, filedescriptor,                                                        \
    C(FD, id, ROW) C(FD, ufd, INT64) C(FD, fd, INT64) C(FD, ts, INT64)         \
        C(FD, upid, INT32) C(FD, path, TEXT))                                  \
  X(MAPPING, stack_profile_mapping,                                            \
    C(MAPPING, id, ROW) C(MAPPING, build_id, TEXT)                             \
        C(MAPPING, exact_offset, INT64) C(MAPPING, start_offset, INT64)        \
            C(MAPPING, start, INT64) C(MAPPING, end, INT64)                    \
                C(MAPPING, load_bias, INT64) C(MAPPING, name, TEXT))           \
  X(FRAME, stack_profile_frame,                                                \
    C(FRAME, id, ROW) C(FRAME, name, TEXT) C(FRAME, mapping, INT32)            \
        C(FRAME, rel_pc, INT64) C(FRAME, symbol_set_id, INT32)                 \
            C(FRAME, deobfuscated_name, TEXT))                                 \
  X(CALLSITE, stack_profile_callsite,                                          \
    C(CALLSITE, id, ROW) C(CALLSITE, depth, INT32)                             \
        C(CALLSITE, parent_id, INT32) C(CALLSITE, frame_id, INT32))            \
  X(SYMBOL, stack_profile_symbol,                                              \
    C(SYMBOL, id, ROW) C(SYMBOL, symbol_set_id, INT32) C(SYMBOL, name, TEXT)   \
        C(SYMBOL, source_file, TEXT) C(SYMBOL, line_number, INT64))            \
  X(PERF_SESSION, __intrinsic_perf_session,                                    \
    C(PERF_SESSION, id, ROW) C(PERF_SESSION, cmdline, TEXT))                   \
  X(PERF_SAMPLE, perf_sample,                                                  \
    C(PERF_SAMPLE, id, ROW) C(PERF_SAMPLE, ts, INT64)                          \
        C(PERF_SAMPLE, utid, INT32) C(PERF_SAMPLE, cpu, INT64)                 \
            C(PERF_SAMPLE, cpu_mode, TEXT) C(PERF_SAMPLE, callsite_id, INT32)  \
                C(PERF_SAMPLE, unwind_error, TEXT)                             \
                    C(PERF_SAMPLE, perf_session_id, INT32))                    \
  X(CPU_SAMPLE, cpu_profile_stack_sample,                                      \
    C(CPU_SAMPLE, id, ROW) C(CPU_SAMPLE, ts, INT64)                            \
        C(CPU_SAMPLE, callsite_id, INT32) C(CPU_SAMPLE, utid, INT32)           \
            C(CPU_SAMPLE, process_priority, INT32))                            \
  X(ALLOCATION, heap_profile_allocation,                                       \
    C(ALLOCATION, id, ROW) C(ALLOCATION, ts, INT64) C(ALLOCATION, upid, INT32) \
        C(ALLOCATION, heap_name, TEXT) C(ALLOCATION, callsite_id, INT32)       \
            C(ALLOCATION, count, INT64) C(ALLOCATION, size, INT64))            \
  X(HEAP_OBJECT, __intrinsic_heap_graph_object,                                \
    C(HEAP_OBJECT, id, ROW) C(HEAP_OBJECT, upid, INT32) C(                     \
        HEAP_OBJECT, graph_sample_ts, INT64) C(HEAP_OBJECT, self_size, INT64)  \
        C(HEAP_OBJECT, native_size, INT64)                                     \
            C(HEAP_OBJECT, reference_set_id, INT32) C(                         \
                HEAP_OBJECT, reachable, INT32) C(HEAP_OBJECT, heap_type, TEXT) \
                C(HEAP_OBJECT, type_id, INT32) C(HEAP_OBJECT, root_type, TEXT) \
                    C(HEAP_OBJECT, root_distance, INT32))                      \
  X(HEAP_REFERENCE, __intrinsic_heap_graph_reference,                          \
    C(HEAP_REFERENCE, id, ROW) C(HEAP_REFERENCE, reference_set_id, INT32)      \
        C(HEAP_REFERENCE, owner_id, INT32) C(HEAP_REFERENCE, owned_id, INT32)  \
            C(HEAP_REFERENCE, field_name, TEXT)                                \
                C(HEAP_REFERENCE, field_type_name, TEXT)                       \
                    C(HEAP_REFERENCE, deobfuscated_field_name, TEXT))          \
  X(HEAP_CLASS, __intrinsic_heap_graph_class,                                  \
    C(HEAP_CLASS, id, ROW) C(HEAP_CLASS, name, TEXT)                           \
        C(HEAP_CLASS, deobfuscated_name, TEXT) C(HEAP_CLASS, location, TEXT)   \
            C(HEAP_CLASS, superclass_id, INT32) C(                             \
                HEAP_CLASS, classloader_id, INT32) C(HEAP_CLASS, kind, TEXT))  \
  X(HEAP_TREE, __intrinsic_heap_graph_tree,                                    \
    C(HEAP_TREE, id, INT32) C(HEAP_TREE, ts, INT64) C(HEAP_TREE, upid, INT32)  \
        C(HEAP_TREE, depth, INT32) C(HEAP_TREE, name, TEXT)                    \
            C(HEAP_TREE, count, INT64) C(HEAP_TREE, cumulative_count, INT64)   \
                C(HEAP_TREE, size, INT64) C(HEAP_TREE, cumulative_size, INT64) \
                    C(HEAP_TREE, parent_id, INT32))                            \
  X(PACKAGE, package_list,                                                     \
    C(PACKAGE, id, ROW) C(PACKAGE, package_name, TEXT) C(PACKAGE, uid, INT64)  \
        C(PACKAGE, debuggable, INT32)                                          \
            C(PACKAGE, profileable_from_shell, INT32)                          \
                C(PACKAGE, version_code, INT64))                               \
  X(SMAPS, profiler_smaps,                                                     \
    C(SMAPS, id, ROW) C(SMAPS, upid, INT32) C(SMAPS, ts, INT64)                \
        C(SMAPS, path, TEXT) C(SMAPS, size_kb, INT64) C(                       \
            SMAPS, private_dirty_kb, INT64) C(SMAPS, swap_kb, INT64)           \
            C(SMAPS, file_name, TEXT) C(SMAPS, start_address, INT64) C(        \
                SMAPS, module_timestamp, INT64) C(SMAPS, module_debugid, TEXT) \
                C(SMAPS, module_debug_path, TEXT)                              \
                    C(SMAPS, protection_flags, INT64)                          \
                        C(SMAPS, private_clean_resident_kb, INT64)             \
                            C(SMAPS, shared_dirty_resident_kb, INT64)          \
                                C(SMAPS, shared_clean_resident_kb, INT64) C(   \
                                    SMAPS, locked_kb, INT64)                   \
                                    C(SMAPS, proportional_resident_kb, INT64)) \
  X(MACHINE, machine,                                                          \
    C(MACHINE, id, ROW) C(MACHINE, raw_id, INT64) C(MACHINE, sysname, TEXT)    \
        C(MACHINE, release, TEXT) C(MACHINE, version, TEXT)                    \
            C(MACHINE, arch, TEXT) C(MACHINE, num_cpus, INT64)                 \
                C(MACHINE, android_build_fingerprint, TEXT)                    \
                    C(MACHINE, android_device_manufacturer, TEXT)              \
                        C(MACHINE, android_sdk_version, INT64))                \
  X(METADATA, metadata,                                                        \
    C(METADATA, id, ROW) C(METADATA, name, TEXT) C(METADATA, key_type, TEXT)   \
        C(METADATA, int_value, INT64) C(METADATA, str_value, TEXT))            \
  X(STATS, stats,                                                              \
    C(STATS, name, TEXT) C(STATS, idx, INT32) C(STATS, severity, TEXT)         \
        C(STATS, source, TEXT) C(STATS, value, INT64))                         \
  X(KERNEL_TIME, _kernel_event_times, C(KERNEL_TIME, ts, INT64))               \
  X(KERNEL_EVENT, __intrinsic_ftrace_event,                                    \
    C(KERNEL_EVENT, id, ROW) C(KERNEL_EVENT, ts, INT64)                        \
        C(KERNEL_EVENT, name, TEXT) C(KERNEL_EVENT, utid, INT32) C(            \
            KERNEL_EVENT, arg_set_id, INT32)                                   \
            C(KERNEL_EVENT, common_flags, INT32) C(KERNEL_EVENT, ucpu, INT32)) \
  X(CHROME_EVENT, __intrinsic_chrome_raw,                                      \
    C(CHROME_EVENT, id, ROW) C(CHROME_EVENT, ts, INT64)                        \
        C(CHROME_EVENT, name, TEXT) C(CHROME_EVENT, utid, INT32)               \
            C(CHROME_EVENT, arg_set_id, INT32))                                \
  X(RAW_ARGS, _raw_args,                                                       \
    C(RAW_ARGS, id, ROW) C(RAW_ARGS, arg_set_id, INT32)                        \
        C(RAW_ARGS, flat_key, TEXT) C(RAW_ARGS, key, TEXT)                     \
            C(RAW_ARGS, int_value, INT64) C(RAW_ARGS, string_value, TEXT)      \
                C(RAW_ARGS, real_value, DOUBLE) C(RAW_ARGS, value_type, TEXT))

/* ST_SLICE_TABLE, … are the tables, ST_SLICE_TS, … the columns. */
#define ST_NO_COLUMN(t, c, type)
#define ST_TABLE_ID(t, name, columns) ST_##t##_TABLE,
enum { ST_TABLES(ST_TABLE_ID, ST_NO_COLUMN) ST_TABLE_COUNT };
/* The tables from this one on are empty unless they are asked for:
 * raw_events.h. */
enum { ST_FIRST_RAW_TABLE = ST_KERNEL_EVENT_TABLE };
#undef ST_TABLE_ID

#define ST_COLUMN_ID(t, c, type) ST_##t##_##c,
#define ST_COLUMN_IDS(t, name, columns) enum { columns ST_##t##_COLUMNS };
ST_TABLES(ST_COLUMN_IDS, ST_COLUMN_ID)
#undef ST_COLUMN_ID
#undef ST_COLUMN_IDS

struct st_storage {
  struct st_string_pool strings;
  struct st_table tables[ST_TABLE_COUNT];
};

void st_storage_init(struct st_storage* s);
/* Returns the id of a text in the string pool. */
static inline st_string st_intern(struct st_storage* s, const char* text) {
  return st_string_of(&s->strings, text);
}
/* Returns the cell of a column machine_id: null for the host, machine 0. */
static inline struct st_cell st_machine_cell(uint32_t machine) {
  return machine ? st_int(machine) : ST_NULL;
}
void st_storage_free(struct st_storage* s);
