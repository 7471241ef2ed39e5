/* Reads the packets of the tracing service: events and config of the session,
 * triggers, and the losses of each buffer.
 *
 * Stretto's service reads a trace from its buffers in passes:
 *
 *   service events | packets of the buffers | read_tracing_buffers_completed
 *
 * So a file that ends within a pass was cut off, even between two packets.  One
 * that the service writes while it records was cut off, too, if the event
 * tracing_disabled is missing: the last pass begins with it.  The traces of other
 * services need not follow these rules. */
#include <string.h>

#include "core/fields.h"
#include "importer.h"
#include "messages.h"

#define EVENT(name) ST_FIELD_TRACING_SERVICE_EVENT_##name

enum {
  /* TracingServiceEvent.DataSources, and its DataSource */
  SLOW_SOURCES = 7,
  CLONE_STARTED = 10,
  BUFFER_CLONED = 11,
  SOURCE = 1,
  SOURCE_PRODUCER = 1,
  SOURCE_NAME = 2,
  /* TraceConfig, BufferConfig */
  BUFFERS = 1,
  WRITE_INTO_FILE = 8,
  FLUSH_PERIOD = 13,
  SESSION_NAME = 22,
  FILL_POLICY = 4,
  DISCARD = 2,
  /* Trigger */
  TRIGGER_NAME = 1,
  TRIGGER_PRODUCER = 2,
  TRIGGER_UID = 3,
  /* TraceStats, WriterStats */
  WRITER_STATS = 18,
  WRITER_SEQUENCE = 1,
  WRITER_BUFFER = 4,
};

static void add_time(struct st_importer* m, const char* name, bool is_multi,
                     int64_t ts) {
  st_add_metadata(m, name, is_multi, st_int(ts), 0);
}

/* Adds a data source that was slow to start, with its producer. */
static void add_slow_source(struct st_importer* m, struct st_field source) {
  struct st_field producer = st_message_find(source, SOURCE_PRODUCER);
  struct st_field name = st_message_find(source, SOURCE_NAME);
  char* text = st_bytes_take(&m->arena, producer.size + name.size + 1);
  if (producer.size)
    memcpy(text, producer.data, producer.size);
  text[producer.size] = ' ';
  if (name.size)
    memcpy(text + producer.size + 1, name.data, name.size);
  st_add_metadata(
      m, "slow_start_data_source", true, ST_NULL,
      st_string_add(&m->storage.strings, text, producer.size + name.size + 1));
}

static void add_slow_sources(struct st_importer* m, struct st_field sources) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, sources.data, sources.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == SOURCE && f.data)
      add_slow_source(m, f);
  }
}

/* Notes what an event, of this field, says about the end of the file. */
static void follow_passes(struct st_passes* p, uint32_t field) {
  p->is_inside = field != EVENT(READ_TRACING_BUFFERS_COMPLETED);
  p->has_begin |= field == EVENT(TRACING_STARTED);
  p->has_end |= field == EVENT(TRACING_DISABLED) || field == CLONE_STARTED;
}

bool st_end_passes(struct st_importer* m) {
  struct st_passes p = m->passes;
  m->passes = (struct st_passes){0};
  bool misses_end = p.is_streamed && p.has_begin && !p.has_end;
  return p.is_ours && (p.is_inside || misses_end);
}

void st_read_service_event(struct st_importer* m, int64_t ts,
                           struct st_field event) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, event.data, event.size);
  while (st_decoder_next(&d, &f)) {
    follow_passes(&m->passes, f.number);
    switch (f.number) {
      case EVENT(TRACING_STARTED):
        add_time(m, "tracing_started_ns", false, ts);
        m->tracing_started = ts;
        break;
      case EVENT(TRACING_DISABLED):
        add_time(m, "tracing_disabled_ns", false, ts);
        break;
      case EVENT(ALL_DATA_SOURCES_STARTED):
        add_time(m, "all_data_source_started_ns", false, ts);
        break;
      case EVENT(ALL_DATA_SOURCES_FLUSHED):
        add_time(m, "all_data_source_flushed_ns", true, ts);
        break;
      case SLOW_SOURCES:
        add_slow_sources(m, f);
        break;
      case CLONE_STARTED:
        st_set_stat(m, "traced_clone_started_timestamp_ns", ST_NO_INDEX, "info",
                    "trace", ts);
        break;
      case BUFFER_CLONED:
        st_set_stat(m, "traced_buf_clone_done_timestamp_ns", (int32_t)f.value,
                    "info", "trace", ts);
        break;
      default:
        break;
    }
  }
}

void st_read_config(struct st_importer* m, struct st_field config) {
  struct st_field session = st_message_find(config, SESSION_NAME);
  if (session.data)
    st_add_metadata(m, "unique_session_name", false, ST_NULL,
                    st_field_text(&m->storage, session));
  if (!st_message_find(config, WRITE_INTO_FILE).value)
    return;
  m->counts.write_into_file = 1;
  m->passes.is_streamed = true;
  m->counts.write_into_file_no_flush +=
      !st_message_find(config, FLUSH_PERIOD).value;
  struct st_decoder d;
  struct st_field f;
  int64_t buffer = 0;
  st_decoder_init(&d, config.data, config.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number != BUFFERS || !f.data)
      continue;
    if (st_message_find(f, FILL_POLICY).value == DISCARD)
      st_set_stat(m, "config_write_into_file_discard", buffer, "data_loss",
                  "trace",
                  st_get_stat(m, "config_write_into_file_discard", buffer) + 1);
    buffer++;
  }
}

void st_count_losses(struct st_importer* m, struct st_field trace_stats) {
  static const char* const kNames[] = {
      "traced_buf_sequence_packet_loss",
      "traced_buf_incremental_sequences_dropped"};
  /* The first pass sets the sums to 0, the second one adds. */
  for (uint32_t pass = 0; pass < 2; pass++) {
    struct st_decoder d;
    struct st_field f;
    st_decoder_init(&d, trace_stats.data, trace_stats.size);
    while (st_decoder_next(&d, &f)) {
      if (f.number != WRITER_STATS || !f.data)
        continue;
      uint32_t id = (uint32_t)st_message_find(f, WRITER_SEQUENCE).value;
      int64_t buffer = (int32_t)st_message_find(f, WRITER_BUFFER).value;
      uint32_t index = st_map_get(&m->sequences.by_id, id);
      if (!index)
        continue;
      const struct st_sequence* s = &m->sequences.sequences.data[index - 1];
      int64_t counts[] = {(int64_t)s->losses,
                          s->skipped && s->skipped == s->needing};
      for (uint32_t i = 0; i < 2; i++)
        st_set_stat(m, kNames[i], buffer, "data_loss", "analysis",
                    pass ? st_get_stat(m, kNames[i], buffer) + counts[i] : 0);
    }
  }
}

void st_parse_trigger(struct st_importer* m, const struct st_event* e) {
  bool is_clone = e->field == ST_FIELD_TRACE_PACKET_CLONE_SNAPSHOT_TRIGGER;
  struct st_field trigger = {.data = e->data, .size = e->size};
  struct st_fixed_track f = {.type = "triggers",
                             .name = st_intern(&m->storage, "Trace Triggers")};
  struct st_field uid = st_message_find(trigger, TRIGGER_UID);
  st_string name =
      st_field_text(&m->storage, st_message_find(trigger, TRIGGER_NAME));
  st_string producer =
      st_field_text(&m->storage, st_message_find(trigger, TRIGGER_PRODUCER));
  struct st_arg_list* args;
  st_slice_begin(&m->slices, st_tracks_fixed_row(&m->tracks, &f), e->ts, 0, 0,
                 name, &args);
  if (args && producer)
    st_arg_add_text(args, st_intern(&m->storage, "producer_name"), producer);
  if (args && uid.number)
    st_arg_add_int(args, st_intern(&m->storage, "trusted_producer_uid"),
                   ST_ARG_INT, (int32_t)uid.value);
  if (is_clone ? m->has_clone_trigger : m->has_trigger || m->has_clone_trigger)
    return;
  m->has_trigger = true;
  m->has_clone_trigger |= is_clone;
  st_add_metadata(m, "trace_trigger", false, ST_NULL, name);
  if (is_clone)
    st_set_stat(m, "traced_clone_trigger_timestamp_ns", ST_NO_INDEX, "info",
                "trace", e->ts);
}
