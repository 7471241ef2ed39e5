"""The tables, views and macros of SQL, under the names of PerfettoSQL.

Views have the columns of Perfetto's trace processor, in the same order. Only the hashes `stack_id`
and `parent_stack_id` of slices are missing: later trace processors don't have them either.
"""

from __future__ import annotations

TABLES = {
    "slice": "_slice",
    "__intrinsic_track": "__intrinsic_track",
    "__intrinsic_args": "__intrinsic_args",
    "stats": "_stats",
}
"""Names of the importer's tables that a view replaces; other tables have their own name."""

ARGS = """
create macro _text_of_real(a) as case
    when a is null then null
    when isinf(a) then if(a > 0, 'Inf', '-Inf')
    else regexp_replace(printf('%.15g', a + 0e0), '^(-?[0-9]+)(e|$)', '\\1.0\\2') end;
create view args as
    select *, case value_type
        when 'string' then string_value
        when 'json' then string_value
        when 'real' then _text_of_real(real_value)
        when 'bool' then if(int_value = 0, 'false', 'true')
        when 'uint' then cast(cast(if(int_value < 0, 18446744073709551616, 0) as hugeint)
            + int_value as varchar)
        when 'pointer' then '0x' || lower(hex(cast(if(int_value < 0, 18446744073709551616, 0)
            as hugeint) + int_value))
        else cast(int_value as varchar) end as display_value
    from __intrinsic_args;
"""
"""The view `args` of DuckDB, and the macro that writes a real as SQLite does."""

VIEWS = """
create view slice as
    select id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts,
        thread_dur, thread_instruction_count, thread_instruction_delta, category as cat,
        id as slice_id
    from _slice;
create view slices as from slice;
create view instant as select ts, track_id, name, arg_set_id from slice where dur = 0;
create view track as
    select id, name, type, dimension_arg_set_id, parent_id, source_arg_set_id, machine_id,
        track_group_id
    from __intrinsic_track;
create view thread_track as
    select id, name, type, parent_id, source_arg_set_id, machine_id, utid
    from __intrinsic_track where event_type = 'slice' and utid is not null;
create view process_track as
    select id, name, type, parent_id, source_arg_set_id, machine_id, upid
    from __intrinsic_track where event_type = 'slice' and upid is not null;
create view counter_track as
    select id, name, null::bigint as parent_id, type, dimension_arg_set_id, source_arg_set_id,
        machine_id, counter_unit as unit,
        (select string_value from __intrinsic_args a
         where a.arg_set_id = t.source_arg_set_id and key = 'description') as description
    from __intrinsic_track t where event_type = 'counter';
create view sched_slice as
    select id, ts, dur, ucpu as cpu, utid, end_state, priority, ucpu from __intrinsic_sched_slice;
create view sched as select *, ts + dur as ts_end from sched_slice;
create view thread_state as
    select id, ts, dur, ucpu as cpu, utid, state, io_wait, blocked_function, waker_utid, waker_id,
        irq_context, ucpu
    from __intrinsic_thread_state;
create view cpu_available_frequencies as
    select id, ucpu as cpu, freq, ucpu from __intrinsic_cpu_freq;
create view cpu_track as
    select t.id, t.name, type, parent_id, source_arg_set_id, machine_id, a.int_value as cpu
    from __intrinsic_track t join __intrinsic_args a on t.dimension_arg_set_id = a.arg_set_id
    where event_type = 'slice' and a.key = 'cpu';
create view cpu_counter_track as
    select c.id, c.name, type, parent_id, source_arg_set_id, machine_id, unit, description,
        a.int_value as cpu
    from counter_track c join __intrinsic_args a on c.dimension_arg_set_id = a.arg_set_id
    where a.key = 'cpu';
create view _counter_track_owners as
    select c.*, utid, upid from counter_track c join __intrinsic_track t using (id);
create view thread_counter_track as
    select id, name, type, parent_id, source_arg_set_id, machine_id, unit, description, utid
    from _counter_track_owners where utid is not null;
create view process_counter_track as
    select id, name, type, parent_id, source_arg_set_id, machine_id, unit, description, upid
    from _counter_track_owners where upid is not null;
create view perf_session as
    select id, cmdline, id as perf_session_id from __intrinsic_perf_session;
create view perf_counter_track as
    select c.id, name, type, parent_id, source_arg_set_id, machine_id, unit, description,
        s.int_value as perf_session_id, p.int_value as cpu, b.int_value as is_timebase
    from counter_track c
    join __intrinsic_args s on c.dimension_arg_set_id = s.arg_set_id and s.key = 'perf_session_id'
    join __intrinsic_args p on c.dimension_arg_set_id = p.arg_set_id and p.key = 'cpu'
    join __intrinsic_args b on c.source_arg_set_id = b.arg_set_id and b.key = 'is_timebase'
    where c.type = 'perf_cpu_counter';
create view stats as select *, '' as description from _stats;
create view counters as
    select c.*, t.name, t.counter_unit as unit
    from counter c join __intrinsic_track t on c.track_id = t.id order by c.ts;
create view heap_graph_object as from __intrinsic_heap_graph_object;
create view heap_graph_reference as from __intrinsic_heap_graph_reference;
create view heap_graph_class as from __intrinsic_heap_graph_class;
create view _times as
    select ts, dur from _slice
    union all select ts, dur from __intrinsic_sched_slice
    union all select ts, dur from __intrinsic_thread_state;
create view trace_bounds as
    select coalesce(min(ts), 0) as start_ts,
        case when max(ts_end) = 9223372036854775807 then max(ts_end)
            when min(ts) = max(ts_end) then max(ts_end) + 1
            else coalesce(max(ts_end), 0) end as end_ts
    from (select ts, -- An end beyond 64 bits wraps around, as the trace processor's.
            case when ts > 0 and dur > 9223372036854775807 - ts
            then (ts - 9223372036854775807 - 1) + (dur - 9223372036854775807 - 1)
            else ts + dur end as ts_end from _times
        union all select ts, ts from counter
        union all select ts, ts from android_logs
        union all select ts, ts from _kernel_event_times
        union all select ts, ts from perf_sample
        union all select ts, ts from cpu_profile_stack_sample
        union all select ts, ts from heap_profile_allocation
        union all select graph_sample_ts, graph_sample_ts from __intrinsic_heap_graph_object);
create view _arg_texts as
    select arg_set_id as _set, key as _key, display_value as _value from args;
"""
"""The other views. SQLite executes them with few changes (`sqlite/views.py`)."""
