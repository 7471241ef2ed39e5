"""Tables of packets that the importer doesn't read.

If all packets of a trace were read, these tables exist and have no rows: nothing is missing. If
some packets were not read, the tables don't exist: a query fails instead of giving an incomplete
answer.
"""

from __future__ import annotations

_SLICE = "id ts dur track_id category:text name:text depth parent_id arg_set_id"

_COLUMNS = {
    "actual_frame_timeline_slice": f"{_SLICE} display_frame_token surface_frame_token upid "
    "layer_name:text present_type:text on_time_finish gpu_composition jank_type:text "
    "jank_severity_type:text prediction_type:text jank_tag:text",
    "android_dumpstate": "id section:text service:text line:text",
    "android_game_intervention_list": "id package_name:text uid current_mode "
    "standard_mode_supported standard_mode_downscale:real standard_mode_use_angle "
    "standard_mode_fps:real perf_mode_supported perf_mode_downscale:real perf_mode_use_angle "
    "perf_mode_fps:real battery_mode_supported battery_mode_downscale:real "
    "battery_mode_use_angle battery_mode_fps:real",
    "expected_frame_timeline_slice": f"{_SLICE} display_frame_token surface_frame_token upid "
    "layer_name:text",
    "frame_slice": f"{_SLICE} layer_name:text frame_number queue_to_acquire_time "
    "acquire_to_latch_time latch_to_present_time",
    "gpu_counter_group": "id group_id track_id",
    "gpu_counter_track": "id name:text type:text parent_id source_arg_set_id machine_id unit:text "
    "description:text gpu_id",
    "gpu_slice": f"{_SLICE} context_id render_target render_target_name:text render_pass "
    "render_pass_name:text command_buffer command_buffer_name:text frame_id submission_id "
    "hw_queue_id upid render_subpasses:text",
    "gpu_track": "id name:text type:text parent_id source_arg_set_id dimension_arg_set_id "
    "machine_id scope:text description:text context_id",
    "instruments_sample": "id ts utid callsite_id cpu",
    "memory_snapshot": "id timestamp track_id detail_level:text",
    "memory_snapshot_edge": "id source_node_id target_node_id importance",
    "memory_snapshot_node": "id process_snapshot_id parent_node_id path:text size effective_size "
    "arg_set_id",
    "process_memory_snapshot": "id snapshot_id upid",
    "protolog": "id ts level:text tag:text message:text stacktrace:text location:text",
    "surfaceflinger_layer": "id snapshot_id arg_set_id base64_proto_id layer_id layer_name:text "
    "is_visible parent corner_radius_tl:real corner_radius_tr:real corner_radius_bl:real "
    "corner_radius_br:real hwc_composition_type is_hidden_by_policy z_order_relative_of "
    "is_missing_z_parent layer_rect_id input_rect_id",
    "surfaceflinger_layers_snapshot": "id ts arg_set_id base64_proto_id sequence_id",
    "surfaceflinger_transactions": "id ts arg_set_id base64_proto_id vsync_id",
    "vulkan_memory_allocations": "id arg_set_id source:text operation:text timestamp upid device "
    "device_memory memory_type heap function_name:text object_handle memory_address memory_size "
    "scope:text",
    "window_manager_shell_transition_handlers": "id handler_id handler_name:text base64_proto_id",
    "window_manager_shell_transitions": "id ts transition_id arg_set_id transition_type "
    "send_time_ns dispatch_time_ns duration_ns finish_time_ns shell_abort_time_ns handler "
    "status:text flags start_transaction_id finish_transaction_id",
}
"""The columns of each table. A column without a type is an integer."""
_TYPES = {"": "bigint", "text": "varchar", "real": "double"}


def absent_tables() -> dict[str, str]:
    """Return the statement that creates each table or view, by name."""
    return {
        table: f'create table "{table}" ({", ".join(map(_declared, columns.split()))})'
        for table, columns in _COLUMNS.items()
    }


def _declared(column: str) -> str:
    name, _, kind = column.partition(":")
    return f'"{name}" {_TYPES[kind]}'


def reason_of_absence(table: str) -> str:
    """Return a sentence that says why one of these tables is missing; empty for other tables."""
    if table.lower() not in _COLUMNS:
        return ""
    return (
        " The trace has packets that aren't imported, so its rows are unknown:"
        " select * from stats where name glob 'stretto_un*'"
    )
