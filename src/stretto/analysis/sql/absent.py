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
    "instruments_sample": "id ts utid callsite_id cpu",
    "heap_graph_object": "id upid graph_sample_ts self_size native_size reference_set_id reachable "
    "heap_type type_id root_type root_distance",
    "heap_graph_class": "id name deobfuscated_name location superclass_id classloader_id kind",
    "heap_graph_reference": "id reference_set_id owner_id owned_id field_name field_type_name "
    "deobfuscated_field_name",
    "gpu_slice": "id ts dur track_id category name depth parent_id arg_set_id",
    "package_list": "id package_name uid debuggable profileable_from_shell version_code",
}


def absent_tables() -> dict[str, str]:
    """Return the statement that creates each table or view, by name."""
    return {
        table: f'create table "{table}" ('
        + ", ".join(f'"{n}" {"varchar" if n in _TEXT else "bigint"}' for n in columns.split())
        + ")"
        for table, columns in _COLUMNS.items()
    }
