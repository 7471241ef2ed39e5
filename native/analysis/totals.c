/* The tables stats and metadata. */
#include "core/fields.h"
#include "importer.h"
#include "messages.h"

static void add_stat(struct st_importer* m, const char* name,
                     struct st_cell index, const char* severity,
                     const char* source, uint64_t value) {
  struct st_cell cells[ST_STATS_COLUMNS] = {
      [ST_STATS_name] = st_text(st_intern(&m->storage, name)),
      [ST_STATS_idx] = index,
      [ST_STATS_severity] = st_text(st_intern(&m->storage, severity)),
      [ST_STATS_source] = st_text(st_intern(&m->storage, source)),
      [ST_STATS_value] = st_int((int64_t)value),
  };
  st_table_add(&m->storage.tables[ST_STATS_TABLE], cells);
}

static uint32_t* stat_row(struct st_importer* m, const char* name,
                          int64_t index) {
  st_string key = st_intern(&m->storage, name);
  return st_map_at(&m->stats, (uint64_t)key << 32 | (uint32_t)index);
}

void st_set_stat(struct st_importer* m, const char* name, int64_t index,
                 const char* severity, const char* source, int64_t value) {
  struct st_table* t = &m->storage.tables[ST_STATS_TABLE];
  uint32_t* row = stat_row(m, name, index);
  if (*row) {
    st_table_set(t, *row - 1, ST_STATS_value, st_int(value));
    return;
  }
  *row = t->rows + 1;
  add_stat(m, name, index == ST_NO_INDEX ? ST_NULL : st_int(index), severity,
           source, (uint64_t)value);
}

int64_t st_get_stat(struct st_importer* m, const char* name, int64_t index) {
  uint32_t row = *stat_row(m, name, index);
  const struct st_table* t = &m->storage.tables[ST_STATS_TABLE];
  return row ? st_table_get(t, row - 1, ST_STATS_value).i : 0;
}

void st_increment_stat(struct st_importer* m, const char* name, int64_t index,
                       const char* severity, const char* source,
                       int64_t value) {
  uint64_t sum = (uint64_t)st_get_stat(m, name, index) + (uint64_t)value;
  st_set_stat(m, name, index, severity, source, (int64_t)sum);
}

/* Returns the counts of the kernels of all machines. */
static struct st_kernel_counts kernel_counts(const struct st_importer* m) {
  struct st_kernel_counts sum = {0};
  for (uint32_t i = 0; i < m->machines.machines.size; i++) {
    const struct st_kernel_counts* c =
        &m->machines.machines.data[i]->kinds.counts;
    sum.unknown_memory += c->unknown_memory;
    sum.negative_sizes += c->negative_sizes;
    sum.unknown_spaces += c->unknown_spaces;
    sum.cut_writes += c->cut_writes;
  }
  return sum;
}

/* Adds the statistics that the importer has counted itself. */
static void add_counts(struct st_importer* m) {
  const struct st_counts* c = &m->counts;
  const struct st_ftrace* f = &m->ftrace;
  const struct st_kernel_counts k = kernel_counts(m);
  const struct {
    const char *name, *severity, *source;
    uint64_t value;
  } kStats[] = {
      {"clock_sync_failure", "error", "analysis", c->clock_failures},
      {"invalid_clock_snapshots", "error", "analysis", c->invalid_snapshots},
      {"trace_sorter_negative_timestamp_dropped", "error", "trace",
       c->negative_timestamps},
      {"slice_drop_overlapping_complete_event", "error", "trace",
       m->slices.dropped_overlapping},
      {"proc_stat_unknown_counters", "error", "analysis", c->proc_stat_unknown},
      {"misplaced_end_event", "data_loss", "analysis", m->slices.misplaced_end},
      {"tokenizer_skipped_packets", "info", "analysis", c->skipped_packets},
      {"interned_data_tokenizer_errors", "info", "analysis",
       m->sequences.failed_lookups},
      {"track_event_tokenizer_errors", "info", "analysis", c->tokenizer_errors},
      {"track_event_parser_errors", "info", "analysis", c->parser_errors},
      {"config_write_into_file_no_flush", "error", "trace",
       c->write_into_file_no_flush},
      {"json_tokenizer_failure", "error", "trace", m->json.invalid},
      {"json_parser_failure", "error", "trace", m->json.unusable},
      {"json_display_time_unit", "info", "trace", m->json.reader.has_time_unit},
      {"flow_duplicate_id", "error", "trace", m->flows.duplicate_ids},
      {"flow_no_enclosing_slice", "error", "trace", m->flows.without_slice},
      {"flow_invalid_id", "error", "trace", m->flows.invalid_ids},
      {"flow_without_direction", "error", "trace", m->flows.without_direction},
      {"flow_step_without_start", "info", "trace",
       m->flows.steps_without_start},
      {"flow_end_without_start", "info", "trace", m->flows.ends_without_start},
      {"process_tracker_errors", "error", "analysis", m->processes.errors},
      {"meminfo_unknown_keys", "error", "analysis", c->meminfo_unknown},
      {"vmstat_unknown_keys", "error", "analysis", c->vmstat_unknown},
      {"psi_unknown_resource", "error", "analysis", c->psi_unknown},
      {"invalid_cpu_times", "error", "analysis", c->invalid_cpu_times},
      {"mismatched_sched_switch_tids", "error", "analysis",
       f->mismatched_switches},
      {"task_state_invalid", "error", "analysis", f->invalid_states},
      {"compact_sched_has_parse_errors", "error", "trace", f->compact_errors},
      {"compact_sched_switch_skipped", "info", "analysis", f->switches_skipped},
      {"compact_sched_waking_skipped", "info", "analysis", f->wakings_skipped},
      {"ftrace_bundle_tokenizer_errors", "error", "analysis", f->bundle_errors},
      {"ftrace_generic_descriptor_errors", "error", "analysis",
       f->descriptor_errors},
      {"ftrace_missing_event_id", "info", "analysis", f->missing_ids},
      {"ftrace_packet_before_tracing_start", "info", "analysis",
       f->before_start},
      {"ftrace_setup_errors", "info", "trace", f->setup_errors},
      {"systrace_parse_failure", "error", "analysis", f->atrace_errors},
      {"mm_unknown_type", "error", "analysis", k.unknown_memory},
      {"rss_stat_negative_size", "info", "analysis", k.negative_sizes},
      {"rss_stat_unknown_thread_for_mm_id", "info", "analysis",
       k.unknown_spaces},
      {"truncated_sys_write_duration", "info", "analysis", k.cut_writes},
      /* Perfetto has no names for the statistics below. */
      {"stretto_previous_packet_dropped", "data_loss", "trace",
       c->previous_packet_dropped},
      {"stretto_write_into_file", "info", "trace", c->write_into_file},
      {"stretto_fxt_buffer_filled", "data_loss", "trace", m->fxt.full_buffers},
      {"stretto_unread_bytes", "data_loss", "analysis", c->truncated_bytes},
      {"stretto_undecodable_packets", "error", "analysis",
       c->undecodable_packets},
      {"stretto_undecodable_arguments", "error", "analysis",
       c->undecodable_arguments},
      {"stretto_deep_slices", "error", "analysis", m->slices.too_deep},
      {"stretto_unread_packets", "info", "analysis", c->unread_packets},
      {"stretto_unread_events", "info", "analysis", c->unread_events},
      {"unknown_extension_fields", "error", "trace", c->unknown_fields},
      {"stretto_unread_json_events", "data_loss", "analysis", m->json.lost},
      {"stretto_unread_fields", "info", "analysis", c->unread_fields},
      {"stretto_cut_off", "data_loss", "analysis", m->is_cut_off},
      {"stretto_unread_kernel_events", "info", "analysis",
       f->unread + m->systrace.unread_lines},
  };
  for (size_t i = 0; i < sizeof kStats / sizeof *kStats; i++)
    add_stat(m, kStats[i].name, ST_NULL, kStats[i].severity, kStats[i].source,
             kStats[i].value);
}

/* The names of the fields of TraceStats, and of its BufferStats. */
struct stat_name {
  uint8_t field;
  const char *name, *severity;
};

static const struct stat_name kTraceStats[] = {
    {2, "traced_producers_connected", "info"},
    {3, "traced_producers_seen", "info"},
    {4, "traced_data_sources_registered", "info"},
    {5, "traced_data_sources_seen", "info"},
    {6, "traced_tracing_sessions", "info"},
    {7, "traced_total_buffers", "info"},
    {8, "traced_chunks_discarded", "info"},
    {9, "traced_patches_discarded", "info"},
    {12, "traced_flushes_requested", "info"},
    {13, "traced_flushes_succeeded", "info"},
    {14, "traced_flushes_failed", "data_loss"},
};

static const struct stat_name kBufferStats[] = {
    {12, "traced_buf_buffer_size", "info"},
    {1, "traced_buf_bytes_written", "info"},
    {13, "traced_buf_bytes_overwritten", "info"},
    {14, "traced_buf_bytes_read", "info"},
    {15, "traced_buf_padding_bytes_written", "info"},
    {16, "traced_buf_padding_bytes_cleared", "info"},
    {2, "traced_buf_chunks_written", "info"},
    {10, "traced_buf_chunks_rewritten", "info"},
    {3, "traced_buf_chunks_overwritten", "info"},
    {18, "traced_buf_chunks_discarded", "info"},
    {17, "traced_buf_chunks_read", "info"},
    {11, "traced_buf_chunks_committed_out_of_order", "info"},
    {4, "traced_buf_write_wrap_count", "info"},
    {5, "traced_buf_patches_succeeded", "info"},
    {6, "traced_buf_patches_failed", "data_loss"},
    {7, "traced_buf_readaheads_succeeded", "info"},
    {8, "traced_buf_readaheads_failed", "info"},
    {9, "traced_buf_abi_violations", "data_loss"},
    {19, "traced_buf_trace_writer_packet_loss", "data_loss"},
};

static const struct stat_name kFilterStats[] = {
    {2, "filter_input_bytes", "info"},   {1, "filter_input_packets", "info"},
    {3, "filter_output_bytes", "info"},  {4, "filter_errors", "error"},
    {5, "filter_time_taken_ns", "info"},
};

/* Adds a row for each name; a field that is absent is 0. */
static void add_fields(struct st_importer* m, const struct stat_name* names,
                       size_t count, struct st_cell index, const uint8_t* data,
                       size_t size) {
  for (size_t i = 0; i < count; i++) {
    uint64_t value = 0;
    struct st_decoder d;
    struct st_field f;
    st_decoder_init(&d, data, size);
    while (st_decoder_next(&d, &f)) {
      if (f.number == names[i].field && !f.data)
        value = f.value;
    }
    add_stat(m, names[i].name, index, names[i].severity, "trace", value);
  }
}

/* The field of TraceFilterStats with the bytes that the filter removed from each
 * buffer. */
enum { FILTERED_BYTES = 20 };

static void add_filter_stats(struct st_importer* m, struct st_field stats) {
  struct st_integers bytes;
  uint64_t value;
  int64_t buffer = 0;
  add_fields(m, kFilterStats, sizeof kFilterStats / sizeof *kFilterStats,
             ST_NULL, stats.data, stats.size);
  st_integers_init(&bytes, stats, FILTERED_BYTES);
  while (st_integers_next(&bytes, &value))
    add_stat(m, "traced_buf_bytes_filtered_out", st_int(buffer++), "info",
             "trace", value);
}

/* Fields of TraceStats. */
enum { BUFFER_STATS = 1, FILTER_STATS = 11, FINAL_FLUSH = 15 };

static void add_trace_stats(struct st_importer* m) {
  struct st_field stats = m->trace_stats;
  struct st_decoder d;
  struct st_field f;
  int64_t buffer = 0;
  add_fields(m, kTraceStats, sizeof kTraceStats / sizeof *kTraceStats, ST_NULL,
             stats.data, stats.size);
  st_decoder_init(&d, stats.data, stats.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == FINAL_FLUSH && f.value)
      add_stat(m,
               f.value == 1 ? "traced_final_flush_succeeded"
                            : "traced_final_flush_failed",
               ST_NULL, f.value == 1 ? "info" : "data_loss", "trace", 1);
    if (f.number == FILTER_STATS && f.data)
      add_filter_stats(m, f);
    if (f.number == BUFFER_STATS && f.data)
      add_fields(m, kBufferStats, sizeof kBufferStats / sizeof *kBufferStats,
                 st_int(buffer++), f.data, f.size);
  }
}

static void add_metadata_row(struct st_importer* m, st_string key,
                             bool is_multi, struct st_cell number,
                             st_string text) {
  struct st_table* t = &m->storage.tables[ST_METADATA_TABLE];
  struct st_cell cells[ST_METADATA_COLUMNS] = {
      [ST_METADATA_id] = st_int(t->rows),
      [ST_METADATA_name] = st_text(key),
      [ST_METADATA_key_type] =
          st_text(st_intern(&m->storage, is_multi ? "multi" : "single")),
      [ST_METADATA_int_value] = number,
      [ST_METADATA_str_value] = st_text(text),
  };
  st_table_add(t, cells);
}

void st_add_metadata(struct st_importer* m, const char* name, bool is_multi,
                     struct st_cell number, st_string text) {
  struct st_table* t = &m->storage.tables[ST_METADATA_TABLE];
  st_string key = st_intern(&m->storage, name);
  uint32_t* known = is_multi ? NULL : st_map_at(&m->metadata, key);
  if (known && *known) {
    st_table_set(t, *known - 1, ST_METADATA_int_value, number);
    st_table_set(t, *known - 1, ST_METADATA_str_value, st_text(text));
    return;
  }
  if (known)
    *known = t->rows + 1;
  add_metadata_row(m, key, is_multi, number, text);
}

void st_add_own_metadata(struct st_importer* m, const char* name,
                         struct st_cell number, st_string text) {
  add_metadata_row(m, st_intern(&m->storage, name), false, number, text);
}

void st_add_totals(struct st_importer* m) {
  add_counts(m);
  if (m->trace_stats.data)
    add_trace_stats(m);
  st_add_metadata(m, "trace_type", false, ST_NULL,
                  st_intern(&m->storage, m->has_packets        ? "proto"
                                         : m->json.is_used     ? "json"
                                         : m->systrace.is_used ? "systrace"
                                         : m->fxt.is_used      ? "fuchsia"
                                                               : "proto"));
  st_add_metadata(m, "trace_size_bytes", false, st_int((int64_t)m->fed_bytes),
                  0);
  for (uint32_t i = m->machines.machines.size; i-- > 0;) {
    const struct st_clocks* clocks = &m->machines.machines.data[i]->clocks;
    if (clocks->is_locked)
      st_add_metadata(m, "trace_time_clock_id", false,
                      st_int((int64_t)clocks->trace_clock), 0);
  }
}
