"""Tables of packets that the importer doesn't read.

If all packets of a trace were read, these tables exist and have no rows: nothing is missing. If
some packets were not read, the tables don't exist: a query fails instead of giving an incomplete
answer.
"""

from __future__ import annotations

_TEXT = frozenset(
    "name cpu_mode unwind_error cmdline build_id heap_name "
    "deobfuscated_name location kind source_file reachable_type heap_type root_type field_name "
    "field_type_name deobfuscated_field_name".split()
)

_COLUMNS = {
    "ftrace_event": "id ts name cpu utid arg_set_id common_flags ucpu",
    "stack_profile_mapping": "id build_id exact_offset start_offset start end load_bias name",
    "stack_profile_frame": "id name mapping rel_pc symbol_set_id deobfuscated_name",
    "stack_profile_callsite": "id depth parent_id frame_id",
    "stack_profile_symbol": "id symbol_set_id name source_file line_number",
    "perf_session": "id cmdline perf_session_id",
    "perf_sample": "id ts utid cpu cpu_mode callsite_id unwind_error perf_session_id",
    "cpu_profile_stack_sample": "id ts callsite_id utid process_priority",
    "instruments_sample": "id ts utid callsite_id cpu",
    "heap_profile_allocation": "id ts upid heap_name callsite_id count size",
    "heap_graph_object": "id upid graph_sample_ts self_size native_size reference_set_id reachable "
    "heap_type type_id root_type root_distance",
    "heap_graph_class": "id name deobfuscated_name location superclass_id classloader_id kind",
    "heap_graph_reference": "id reference_set_id owner_id owned_id field_name field_type_name "
    "deobfuscated_field_name",
    "gpu_slice": "id ts dur track_id category name depth parent_id arg_set_id",
    "package_list": "id package_name uid debuggable profileable_from_shell version_code",
}

_VIEWS = {
    "perf_counter_track": "create view perf_counter_track as select *, cast(null as bigint) as "
    "perf_session_id, cast(null as bigint) as cpu, cast(null as bigint) as is_timebase "
    "from counter_track where false",
}


def absent_tables() -> dict[str, str]:
    """Return the statement that creates each table or view, by name."""
    tables = {
        table: f'create table "{table}" ('
        + ", ".join(f'"{n}" {"varchar" if n in _TEXT else "bigint"}' for n in columns.split())
        + ")"
        for table, columns in _COLUMNS.items()
    }
    return tables | _VIEWS
