#include "importer.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PACKET = 256 << 20, PACKET_FIELD = 1 };

/* The marker that Perfetto's service writes between packets. */
static const uint8_t kMarker[] = {0x82, 0x47, 0x7a, 0x76, 0xb2, 0x8d,
                                  0x42, 0xba, 0x81, 0xdc, 0x33, 0x32,
                                  0x6d, 0x57, 0xa0, 0x79};

static void init(struct st_importer* m) {
  st_storage_init(&m->storage);
  st_arg_sets_init(&m->arg_sets, &m->storage);
  st_clocks_init(&m->clocks);
  st_sequences_init(&m->sequences, &m->arena, &m->storage.strings);
  st_processes_init(&m->processes, &m->storage);
  st_tracks_init(&m->tracks, &m->storage, &m->arg_sets, &m->processes);
  m->slices.storage = &m->storage;
  m->slices.arg_sets = &m->arg_sets;
  m->flows.storage = &m->storage;
  m->texts.debug = st_intern(&m->storage, "debug");
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

struct st_importer* st_importer_new(void) {
  struct st_importer* m = calloc(1, sizeof *m);
  if (!m)
    return NULL;
  atomic_init(&m->references, 1);
  st_tokenizer_init(&m->tokenizer, PACKET_FIELD, MAX_PACKET, kMarker,
                    sizeof kMarker);
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

bool st_importer_feed(struct st_importer* m, const void* data, size_t size) {
  if (m->failed || m->finished)
    return false;
  m->fed_bytes += size;
  st_tokenizer_append(&m->tokenizer, data, size);
  return run(m, read_packets);
}

/* Sorts events by their timestamps; equal ones keep their order. */
static void sort(st_event_list* list) {
  uint32_t n = list->size;
  bool is_sorted = true;
  for (uint32_t i = 1; i < n && is_sorted; i++)
    is_sorted = list->data[i - 1].ts <= list->data[i].ts;
  if (is_sorted)
    return;
  struct st_event *from = list->data, *to = st_memory_new(n * sizeof *to);
  list->capacity = n;
  for (uint64_t width = 1; width < n; width *= 2) {
    for (uint64_t start = 0; start < n; start += 2 * width) {
      uint64_t a = start, middle = start + width < n ? start + width : n;
      uint64_t b = middle, end = middle + width < n ? middle + width : n;
      for (uint64_t i = start; i < end; i++) {
        bool left = a < middle && (b == end || from[a].ts <= from[b].ts);
        to[i] = from[left ? a++ : b++];
      }
    }
    struct st_event* swapped = from;
    from = to;
    to = swapped;
  }
  list->data = from;
  free(to);
}

/* Parses the events of both queues, in Perfetto's order: first the queue that
 * begins earlier, up to the first timestamp of the other queue, and including
 * events at this timestamp; then the other queue, and so on. */
static void parse_all(struct st_importer* m) {
  uint32_t p = 0, e = 0;
  while (p < m->packets.size || e < m->events.size) {
    bool packets =
        e == m->events.size ||
        (p < m->packets.size && m->packets.data[p].ts <= m->events.data[e].ts);
    int64_t limit = INT64_MAX;
    if (packets) {
      if (e < m->events.size)
        limit = m->events.data[e].ts;
      while (p < m->packets.size && m->packets.data[p].ts <= limit)
        st_parse_packet(m, &m->packets.data[p++]);
    } else {
      if (p < m->packets.size)
        limit = m->packets.data[p].ts;
      while (e < m->events.size && m->events.data[e].ts <= limit)
        st_parse_event(m, &m->events.data[e++]);
    }
  }
}

static void finish(struct st_importer* m) {
  st_tokenizer_end(&m->tokenizer);
  read_packets(m);
  m->counts.truncated_bytes =
      st_tokenizer_left(&m->tokenizer) + m->tokenizer.skipped;
  st_read_deferred(m);
  sort(&m->packets);
  sort(&m->events);
  parse_all(m);
  st_slices_finish(&m->slices);
  st_processes_finish(&m->processes, &m->arg_sets);
  st_add_totals(m);
  for (uint32_t i = 0; i < ST_TABLE_COUNT; i++)
    st_table_complete(&m->storage.tables[i]);
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
  st_clocks_free(&m->clocks);
  st_sequences_free(&m->sequences);
  st_processes_free(&m->processes);
  st_tracks_free(&m->tracks);
  st_slices_free(&m->slices);
  st_flows_free(&m->flows);
  st_map_free(&m->process_counters);
  st_map_free(&m->thread_counters);
  st_map_free(&m->metadata);
  st_storage_free(&m->storage);
  free(m->packets.data);
  free(m->events.data);
  free(m->deferred.data);
  free(m);
}
