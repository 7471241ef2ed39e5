/* Parses packets of profilers: streams of stacks, symbols, memory maps. */
#include "core/fields.h"
#include "importer.h"
#include "messages.h"

enum {
  /* StreamingProfilePacket */
  STREAM_CALLSTACKS = 1,
  STREAM_DELTAS = 2,
  STREAM_PRIORITY = 3,
  /* ModuleSymbols, AddressSymbols, Line */
  MODULE_PATH = 1,
  MODULE_BUILD_ID = 2,
  MODULE_ADDRESSES = 3,
  ADDRESS = 1,
  ADDRESS_LINES = 2,
  LINE_FUNCTION = 1,
  LINE_FILE = 2,
  LINE_NUMBER = 3,
  /* SmapsPacket, SmapsEntry */
  SMAPS_PID = 1,
  SMAPS_ENTRIES = 2,
  SMAPS_FIELDS = 16,
};

static void add_cpu_sample(struct st_importer* m, int64_t ts, uint32_t callsite,
                           uint32_t utid, int32_t priority) {
  struct st_table* t = &m->storage.tables[ST_CPU_SAMPLE_TABLE];
  struct st_cell cells[ST_CPU_SAMPLE_COLUMNS] = {
      [ST_CPU_SAMPLE_id] = st_int(t->rows),
      [ST_CPU_SAMPLE_ts] = st_int(ts),
      [ST_CPU_SAMPLE_callsite_id] = st_int(callsite),
      [ST_CPU_SAMPLE_utid] = st_int(utid),
      [ST_CPU_SAMPLE_process_priority] = st_int(priority),
  };
  st_table_add(t, cells);
}

/* Parses a packet with the stacks of a thread, and the time since the previous
 * one for each. */
static void parse_stream(struct st_importer* m, const struct st_event* e,
                         uint32_t generation) {
  struct st_field stream = {.data = e->data, .size = e->size};
  const struct st_sequence* sequence =
      &m->sequences.sequences
           .data[m->sequences.generations.data[generation].sequence];
  uint32_t utid = st_thread_get(&m->processes, (uint32_t)sequence->tid,
                                (uint32_t)sequence->pid);
  uint32_t upid = st_process_get(&m->processes, (uint32_t)sequence->pid);
  int32_t priority = (int32_t)st_message_find(stream, STREAM_PRIORITY).value;
  struct st_integers stacks, deltas;
  uint64_t stack, delta, ts = (uint64_t)e->ts;
  st_integers_init(&stacks, stream, STREAM_CALLSTACKS);
  st_integers_init(&deltas, stream, STREAM_DELTAS);
  while (st_integers_next(&stacks, &stack)) {
    if (!st_integers_next(&deltas, &delta)) {
      st_count_error(m, "stackprofile_parser_error");
      break;
    }
    uint32_t callsite = st_interned_stack(m, generation, upid, stack);
    if (callsite == ST_NO_ROW) {
      st_count_error(m, "stackprofile_parser_error");
      continue;
    }
    ts += delta * 1000;
    add_cpu_sample(m, (int64_t)ts, callsite, utid, priority);
  }
}

int64_t st_streaming_profile_time(struct st_importer* m, uint32_t index,
                                  const uint8_t* data, size_t size) {
  struct st_sequence* sequence = &m->sequences.sequences.data[index];
  int64_t ts = (int64_t)sequence->thread_time;
  struct st_integers deltas;
  uint64_t delta;
  st_clocks_convert(&m->machine->clocks, ST_CLOCK_MONOTONIC, ts, &ts);
  st_integers_init(&deltas, (struct st_field){.data = data, .size = size},
                   STREAM_DELTAS);
  while (st_integers_next(&deltas, &delta))
    sequence->thread_time += delta * 1000;
  return ts;
}

static void add_line(struct st_importer* m, struct st_field line,
                     uint32_t set) {
  struct st_table* t = &m->storage.tables[ST_SYMBOL_TABLE];
  struct st_field f[LINE_NUMBER + 1];
  st_message_read(line, f, LINE_NUMBER + 1);
  bool has_file = f[LINE_FILE].size > 0;
  struct st_cell cells[ST_SYMBOL_COLUMNS] = {
      [ST_SYMBOL_id] = st_int(t->rows),
      [ST_SYMBOL_symbol_set_id] = st_int(set),
      [ST_SYMBOL_name] = st_text(st_field_text(&m->storage, f[LINE_FUNCTION])),
  };
  if (has_file)
    cells[ST_SYMBOL_source_file] =
        st_text(st_field_text(&m->storage, f[LINE_FILE]));
  if (has_file && f[LINE_NUMBER].number)
    cells[ST_SYMBOL_line_number] = st_int((uint32_t)f[LINE_NUMBER].value);
  st_table_add(t, cells);
}

/* Parses the lines of an address; the first one is that of the innermost
 * function that was inlined. */
static void parse_address(struct st_importer* m, struct st_field address,
                          st_string path, st_string build_id) {
  struct st_table* t = &m->storage.tables[ST_SYMBOL_TABLE];
  uint32_t set = t->rows;
  uint64_t pc = st_message_find(address, ADDRESS).value;
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, address.data, address.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ADDRESS_LINES && f.data)
      add_line(m, f, set);
  }
  if (t->rows > set &&
      !st_stacks_symbolize(&m->stacks, path, build_id, pc, set))
    st_count_error(m, "stackprofile_invalid_frame_id");
}

static void parse_symbols(struct st_importer* m, const struct st_event* e) {
  struct st_field symbols = {.data = e->data, .size = e->size}, f;
  struct st_field id = st_message_find(symbols, MODULE_BUILD_ID);
  st_string path =
      st_field_text(&m->storage, st_message_find(symbols, MODULE_PATH));
  st_string build_id = st_build_id(&m->storage, id.data, id.size);
  if (!st_module_is_known(&m->stacks, path, build_id)) {
    st_count_error(m, "stackprofile_invalid_mapping_id");
    return;
  }
  struct st_decoder d;
  st_decoder_init(&d, symbols.data, symbols.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == MODULE_ADDRESSES && f.data)
      parse_address(m, f, path, build_id);
  }
}

static void add_map(struct st_importer* m, int64_t ts, uint32_t upid,
                    struct st_field entry) {
  struct st_table* t = &m->storage.tables[ST_SMAPS_TABLE];
  struct st_field f[SMAPS_FIELDS];
  struct st_cell cells[ST_SMAPS_COLUMNS] = {[ST_SMAPS_id] = st_int(t->rows),
                                            [ST_SMAPS_upid] = st_int(upid),
                                            [ST_SMAPS_ts] = st_int(ts)};
  st_message_read(entry, f, SMAPS_FIELDS);
  /* The columns are in the order of the fields. */
  for (uint32_t i = 1; i < SMAPS_FIELDS; i++) {
    uint32_t column = ST_SMAPS_path + i - 1;
    cells[column] = t->spec->columns[column].type == ST_TEXT
                        ? st_text(st_field_text(&m->storage, f[i]))
                        : st_int((int64_t)f[i].value);
  }
  st_table_add(t, cells);
}

static void parse_maps(struct st_importer* m, const struct st_event* e) {
  struct st_field maps = {.data = e->data, .size = e->size}, f;
  uint32_t upid = st_process_get(
      &m->processes, (uint32_t)st_message_find(maps, SMAPS_PID).value);
  struct st_decoder d;
  st_decoder_init(&d, maps.data, maps.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == SMAPS_ENTRIES && f.data)
      add_map(m, e->ts, upid, f);
  }
}

void st_parse_profile(struct st_importer* m, const struct st_event* e) {
  uint32_t generation = e->generation;
  switch (e->field) {
    case ST_FIELD_TRACE_PACKET_PERF_SAMPLE:
      st_parse_perf_sample(m, e, generation);
      break;
    case ST_FIELD_TRACE_PACKET_STREAMING_PROFILE_PACKET:
      parse_stream(m, e, generation);
      break;
    case ST_FIELD_TRACE_PACKET_PROFILE_PACKET:
      st_parse_heap_profile(m, e, generation);
      break;
    case ST_FIELD_HEAP_GRAPH:
      st_parse_heap_graph(m, e, generation);
      break;
    case ST_FIELD_TRACE_PACKET_MODULE_SYMBOLS:
      parse_symbols(m, e);
      break;
    default:
      parse_maps(m, e);
  }
}
