"""What may be in a trace and not in its tables, by statistic."""

from __future__ import annotations

UNREAD = {
    "stretto_cut_off": "end of the file, which was cut off or is damaged",
    "stretto_unread_bytes": "bytes at the end, or in damaged places",
    "stretto_undecodable_packets": "malformed packets",
    "stretto_undecodable_arguments": "arguments of events that are malformed or nest too deeply",
    "stretto_unread_packets": "packets of kinds that are not imported yet",
    "stretto_unread_events": "track events of kinds that are not imported yet",
    "stretto_unread_kernel_events": "kernel events of kinds that are not imported yet",
    "stretto_unread_fields": "fields of track events that are not imported yet",
    "stretto_fxt_buffer_filled": "losses reported by programs with a full buffer",
    "unknown_extension_fields": "typed arguments without a name in the trace",
}
"""What the importer doesn't know, by statistic."""

DROPPED = {
    "slice_drop_overlapping_complete_event": "slices that overlap others of their thread",
    "trace_sorter_negative_timestamp_dropped": "events with a negative timestamp",
    "json_tokenizer_failure": "events that can't be read",
    "json_parser_failure": "events without what their phase needs",
    "stretto_unread_json_events": "events of phases that are not imported (S, T, p, F, unknown)",
}
"""What it knows, and makes no rows of, as Perfetto's trace processor."""

WRONG = {
    "stretto_deep_slices": "the true times of slices inside more than 511 others, and of the "
    "slices around them",
}
"""What is in the tables with wrong values, as in those of Perfetto's trace processor."""

MISSING = UNREAD | DROPPED | WRONG
"""All that is in the trace and not, or not as it was, in the tables."""

DAMAGE = (
    "stretto_cut_off",
    "stretto_unread_bytes",
    "stretto_undecodable_packets",
    "stretto_undecodable_arguments",
    *DROPPED,
    *WRONG,
)
"""Those that mean that slices or arguments are missing or wrong."""
