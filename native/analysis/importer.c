#include "importer.h"

#include <stdlib.h>

#include "track_event_schema.h"

enum { MAX_PACKET = 256 << 20, PACKET_FIELD = 1 };

/* The marker that Perfetto's service writes between packets. */
static const uint8_t kMarker[] = {0x82, 0x47, 0x7a, 0x76, 0xb2, 0x8d,
                                  0x42, 0xba, 0x81, 0xdc, 0x33, 0x32,
                                  0x6d, 0x57, 0xa0, 0x79};

static void use_machine(struct st_importer* m, uint32_t number) {
  m->machine = m->machines.machines.data[number];
  m->tracks.cpus = m->sched.cpus = &m->machine->cpus;
  m->tracks.machine = m->flows.machine = m->stacks.machine = number;
  st_processes_use_machine(&m->processes, number);
}

void st_use_source(struct st_importer* m, uint32_t source) {
  struct st_source place = m->machines.sources.data[source];
  use_machine(m, place.machine);
  m->machine->clocks.file = place.file;
  m->sequences.source = m->tracks.source = source;
  st_sorter_use_source(&m->sorter, source);
}

static void init(struct st_importer* m) {
  st_storage_init(&m->storage);
  st_arg_sets_init(&m->arg_sets, &m->storage, ST_ARGS_TABLE);
  st_raw_events_init(&m->raw, &m->storage);
  st_sequences_init(&m->sequences, &m->arena, &m->storage.strings);
  st_processes_init(&m->processes, &m->storage);
  st_tracks_init(&m->tracks, &m->storage, &m->arg_sets, &m->processes);
  st_sched_init(&m->sched, &m->storage, &m->processes);
  m->machines.storage = &m->storage;
  uint32_t host = st_machine_get(&m->machines, 0);
  st_use_source(m, st_source_get(&m->machines, 0, host));
  m->stacks.storage = &m->storage;
  m->slices.storage = &m->storage;
  m->slices.arg_sets = &m->arg_sets;
  m->flows.storage = &m->storage;
  m->flows.arg_sets = &m->arg_sets;
  m->texts.annotation =
      st_intern(&m->storage, ".perfetto.protos.DebugAnnotation");
  m->schemas.storage = &m->storage;
  st_schemas_add(&m->schemas, kTrackEventSchema, sizeof kTrackEventSchema);
}

/* Runs a step.  Returns false if memory was exhausted in it, or earlier. */
static bool run(struct st_importer* m, void (*step)(struct st_importer*)) {
  jmp_buf place;
  if (m->failed)
    return false;
  jmp_buf* previous = st_memory_catch(&place);
  if (setjmp(place) == 0)
    step(m);
  else
    m->failed = true;
  st_memory_catch(previous);
  return !m->failed;
}

static void init_tokenizer(struct st_importer* m) {
  st_tokenizer_init(&m->tokenizer, PACKET_FIELD, MAX_PACKET, kMarker,
                    sizeof kMarker);
}

struct st_importer* st_importer_new(void) {
  struct st_importer* m = calloc(1, sizeof *m);
  if (!m)
    return NULL;
  atomic_init(&m->references, 1);
  init_tokenizer(m);
  if (run(m, init))
    return m;
  st_importer_free(m);
  return NULL;
}

static void read_packets(struct st_importer* m) {
  struct st_token token;
  while (st_tokenizer_next(&m->tokenizer, &token))
    st_read_packet(m, token.data, token.size);
  if (m->tokenizer.out_of_memory)
    st_memory_fail();
}

void st_read_packets(struct st_importer* m, const void* data, size_t size) {
  st_tokenizer_append(&m->tokenizer, data, size);
  read_packets(m);
}

static void read_piece(struct st_importer* m) {
  switch (m->kind) {
    case ST_FILE_JSON:
      st_read_json(m, m->piece, m->piece_size);
      break;
    case ST_FILE_SYSTRACE:
      st_read_systrace(m, m->piece, m->piece_size);
      break;
    case ST_FILE_FXT:
      st_read_fxt(m, m->piece, m->piece_size);
      break;
    default:
      st_read_packets(m, m->piece, m->piece_size);
  }
}

static void begin_file(struct st_importer* m, const void* data, size_t size) {
  m->kind = st_json_begins(data, size)       ? ST_FILE_JSON
            : st_fxt_begins(data, size)      ? ST_FILE_FXT
            : st_systrace_begins(data, size) ? ST_FILE_SYSTRACE
                                             : ST_FILE_PACKETS;
  m->json.is_used |= m->kind == ST_FILE_JSON;
  m->systrace.is_used |= m->kind == ST_FILE_SYSTRACE;
  m->fxt.is_used |= m->kind == ST_FILE_FXT;
  m->has_packets |= m->kind == ST_FILE_PACKETS;
}

bool st_importer_feed(struct st_importer* m, const void* data, size_t size) {
  if (m->failed || m->finished)
    return false;
  if (!m->kind && size)
    begin_file(m, data, size);
  m->fed_bytes += size;
  m->piece = data;
  m->piece_size = size;
  return run(m, read_piece);
}

static void end_file(struct st_importer* m) {
  st_tokenizer_end(&m->tokenizer);
  read_packets(m);
  m->counts.truncated_bytes +=
      st_tokenizer_left(&m->tokenizer) + m->tokenizer.skipped;
  st_read_deferred(m);
  st_use_source(m, st_source_get(&m->machines, m->file, 0));
  st_end_json(m);
  st_end_fxt(m);
  m->is_cut_off |= st_end_passes(m);
}

static void next_file(struct st_importer* m) {
  end_file(m);
  st_tokenizer_free(&m->tokenizer);
  init_tokenizer(m);
  m->systrace.part = ST_SYSTRACE_START;
  m->systrace.line.size = 0;
  m->kind = ST_FILE_UNKNOWN;
  st_use_source(m, st_source_get(&m->machines, ++m->file, 0));
}

bool st_importer_next_file(struct st_importer* m) {
  return !m->finished && run(m, next_file);
}

static void parse(void* context, const struct st_queue* queue,
                  const struct st_event* e) {
  struct st_importer* m = context;
  if (queue->source != m->tracks.source)
    st_use_source(m, queue->source);
  switch (queue->kind) {
    case ST_QUEUE_PACKETS:
      st_parse_packet(m, e);
      break;
    case ST_QUEUE_EVENTS:
      st_parse_event(m, e);
      break;
    case ST_QUEUE_JSON:
      st_parse_json(m, e);
      break;
    case ST_QUEUE_FXT:
      st_parse_fxt(m, e);
      break;
    case ST_QUEUE_SYSTRACE:
      st_parse_systrace(m, e);
      break;
    default:
      st_parse_ftrace(m, queue, e);
  }
}

static void finish(struct st_importer* m) {
  end_file(m);
  if (m->has_packets || !(m->json.is_used || m->fxt.is_used))
    st_processes_use_idle(&m->processes);
  st_sorter_run(&m->sorter, parse, m);
  st_use_source(m, 0);
  if (m->json.is_used)
    st_finish_json(m);
  st_slices_finish(&m->slices);
  for (uint32_t i = 0; i < m->machines.machines.size; i++) {
    use_machine(m, i);
    st_finish_kernel_counters(m);
    st_cpus_finish(&m->machine->cpus, &m->storage);
  }
  use_machine(m, 0);
  st_raw_finish(m);
  st_processes_finish(&m->processes, &m->arg_sets);
  st_stacks_finish(&m->stacks);
  st_finish_heap_graphs(m);
  st_finish_deobfuscation(m);
  st_heap_flamegraphs(m);
  st_add_totals(m);
  st_bytes_free(&m->arena);
}

bool st_importer_finish(struct st_importer* m) {
  if (m->finished)
    return !m->failed;
  bool done = run(m, finish);
  m->finished = true;
  return done;
}

void st_importer_keep(struct st_importer* m) {
  atomic_fetch_add(&m->references, 1);
}

void st_importer_free(struct st_importer* m) {
  if (!m || atomic_fetch_sub(&m->references, 1) != 1)
    return;
  st_tokenizer_free(&m->tokenizer);
  st_bytes_free(&m->arena);
  st_map_free(&m->arg_sets.by_hash);
  st_machines_free(&m->machines);
  st_sequences_free(&m->sequences);
  st_processes_free(&m->processes);
  st_tracks_free(&m->tracks);
  st_slices_free(&m->slices);
  st_flows_free(&m->flows);
  st_map_free(&m->metadata);
  st_storage_free(&m->storage);
  st_sorter_free(&m->sorter);
  st_ftrace_free(&m->ftrace);
  st_raw_events_free(&m->raw);
  st_sched_free(&m->sched);
  st_map_free(&m->unknown_ends);
  st_schemas_free(&m->schemas);
  st_stacks_free(&m->stacks);
  st_map_free(&m->perf.sessions);
  st_keys_free(&m->perf.cpu_keys);
  free(m->perf.cpus.data);
  st_sample_hits_free(&m->perf.hits);
  st_heap_profiles_free(&m->heap_profiles);
  st_heap_graphs_free(&m->heap_graphs);
  st_deobfuscation_free(&m->deobfuscation);
  st_map_free(&m->stats);
  st_json_reader_free(&m->json.reader);
  free(m->systrace.line.data);
  st_path_free(&m->path);
  st_fxt_free(&m->fxt);
  st_map_free(&m->async_tracks.first_names);
  free(m->json.counters.data);
  free(m->deferred.data);
  free(m);
}
