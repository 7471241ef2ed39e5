#include "heap_profiles.h"

#include <stdlib.h>

#include "core/fields.h"
#include "importer.h"
#include "messages.h"

enum {
  /* ProfilePacket */
  STRINGS = 1,
  FRAMES = 2,
  STACKS = 3,
  MAPPINGS = 4,
  DUMPS = 5,
  CONTINUED = 6,
  INDEX = 7,
  /* InternedString, Frame, Callstack, Mapping */
  IID = 1,
  TEXT = 2,
  FRAME_FUNCTION = 2,
  FRAME_MAPPING = 3,
  FRAME_PC = 4,
  STACK_FRAMES = 2,
  MAPPING_BUILD_ID = 2,
  MAPPING_START_OFFSET = 3,
  MAPPING_START = 4,
  MAPPING_END = 5,
  MAPPING_LOAD_BIAS = 6,
  MAPPING_PATH = 7,
  MAPPING_EXACT_OFFSET = 8,
  /* ProcessHeapSamples */
  DUMP_PID = 1,
  DUMP_SAMPLES = 2,
  DUMP_REJECTED = 4,
  DUMP_STATS = 5,
  DUMP_DISCONNECTED = 6,
  DUMP_OVERRAN = 7,
  DUMP_CORRUPTED = 8,
  DUMP_TIMESTAMP = 9,
  DUMP_GUARDRAIL = 10,
  DUMP_HEAP = 11,
  DUMP_INTERVAL = 12,
  DUMP_ORIGINAL_INTERVAL = 13,
  DUMP_ERROR = 14,
  ERROR_TIMEOUT = 1,
  /* ProcessStats */
  STATS_SAMPLES = 2,
  STATS_UNWINDING_TIME = 5,
  STATS_BLOCKED = 6,
  /* HeapSample */
  SAMPLE_STACK = 1,
  SAMPLE_ALLOCATED = 2,
  SAMPLE_FREED = 3,
  SAMPLE_ALLOCATIONS = 5,
  SAMPLE_FREES = 6,
  SAMPLE_MAX = 8,
  SAMPLE_MAX_COUNT = 9,

  CLOCK_MONOTONIC_COARSE = 4,
};

/* Returns the number of the profiler of a generation. */
static uint32_t profiler_of(struct st_importer* m, uint32_t generation) {
  struct st_heap_profiles* h = &m->heap_profiles;
  uint32_t* number = st_map_at(
      &h->by_interning, m->sequences.generations.data[generation].interning);
  if (!*number) {
    *ST_PUSH(&h->profilers) = (struct st_heap_profiler){0};
    *number = h->profilers.size;
  }
  return *number - 1;
}

/* Returns the place of what a profile's packets define: row + 1. It is valid
 * until the next definition. */
static uint32_t* own(struct st_importer* m, uint32_t profiler, uint32_t kind,
                     uint64_t iid) {
  struct st_heap_profiles* h = &m->heap_profiles;
  uint64_t profile =
      (uint64_t)profiler << 32 | h->profilers.data[profiler].profiles;
  uint32_t number =
      st_key_number(&h->own_keys, (struct st_key){profile, kind, iid});
  if (number == h->own.size)
    *ST_PUSH(&h->own) = kind == STRINGS && !iid;
  return &h->own.data[number];
}

/* The row of string 0, which is empty, is 0 without its definition, too. */
static st_string string_of(struct st_importer* m, uint32_t profiler,
                           uint64_t iid, bool* is_known) {
  uint32_t row = *own(m, profiler, STRINGS, iid);
  *is_known = row != 0;
  if (!row)
    st_count_error(m, "stackprofile_invalid_string_id");
  return row > 1 ? row - 1 : st_intern(&m->storage, "");
}

static void define_string(struct st_importer* m, uint32_t profiler,
                          struct st_field string) {
  struct st_field f[TEXT + 1];
  st_message_read(string, f, TEXT + 1);
  uint32_t* row = own(m, profiler, STRINGS, f[IID].value);
  if (!*row)
    *row = (f[TEXT].size ? st_field_text(&m->storage, f[TEXT]) : 0) + 1;
}

static st_string read_path(struct st_importer* m, uint32_t profiler,
                           struct st_field mapping) {
  struct st_integers parts;
  uint64_t iid;
  bool is_known = true;
  st_mapping_name_begin(&m->stacks);
  st_integers_init(&parts, mapping, MAPPING_PATH);
  while (is_known && st_integers_next(&parts, &iid)) {
    size_t size;
    const char* text = st_string_text(
        &m->storage.strings, string_of(m, profiler, iid, &is_known), &size);
    if (is_known)
      st_mapping_name_add(&m->stacks, text, size);
  }
  return st_mapping_name_end(&m->stacks);
}

static void define_mapping(struct st_importer* m, uint32_t profiler,
                           struct st_field mapping) {
  struct st_field f[MAPPING_EXACT_OFFSET + 1];
  st_message_read(mapping, f, MAPPING_EXACT_OFFSET + 1);
  bool is_known;
  size_t size;
  const char* id = st_string_text(
      &m->storage.strings,
      string_of(m, profiler, f[MAPPING_BUILD_ID].value, &is_known), &size);
  if (!is_known)
    return;
  st_string build_id = st_build_id(&m->storage, id, size);
  struct st_cell cells[ST_MAPPING_COLUMNS] = {
      [ST_MAPPING_build_id] = st_text(build_id),
      [ST_MAPPING_exact_offset] =
          st_int((int64_t)f[MAPPING_EXACT_OFFSET].value),
      [ST_MAPPING_start_offset] =
          st_int((int64_t)f[MAPPING_START_OFFSET].value),
      [ST_MAPPING_start] = st_int((int64_t)f[MAPPING_START].value),
      [ST_MAPPING_end] = st_int((int64_t)f[MAPPING_END].value),
      [ST_MAPPING_load_bias] = st_int((int64_t)f[MAPPING_LOAD_BIAS].value),
      [ST_MAPPING_name] = st_text(read_path(m, profiler, mapping))};
  uint32_t row = st_mapping_row(&m->stacks, cells, false);
  uint32_t* known = own(m, profiler, MAPPINGS, f[IID].value);
  if (!*known)
    *known = row + 1;
}

static void define_frame(struct st_importer* m, uint32_t profiler,
                         struct st_field frame) {
  struct st_field f[FRAME_PC + 1];
  st_message_read(frame, f, FRAME_PC + 1);
  uint32_t mapping = *own(m, profiler, MAPPINGS, f[FRAME_MAPPING].value);
  if (!mapping) {
    st_count_error(m, "stackprofile_invalid_mapping_id");
    return;
  }
  bool is_known;
  st_string name = string_of(m, profiler, f[FRAME_FUNCTION].value, &is_known);
  if (!is_known)
    return;
  uint32_t row = st_frame_row(&m->stacks, mapping - 1, f[FRAME_PC].value, name);
  uint32_t* known = own(m, profiler, FRAMES, f[IID].value);
  if (!*known)
    *known = row + 1;
}

static void define_stack(struct st_importer* m, uint32_t profiler,
                         struct st_field stack) {
  struct st_integers frames;
  uint64_t iid;
  uint32_t callsite = ST_NO_ROW;
  st_integers_init(&frames, stack, STACK_FRAMES);
  while (st_integers_next(&frames, &iid)) {
    uint32_t frame = *own(m, profiler, FRAMES, iid);
    if (!frame) {
      st_count_error(m, "stackprofile_invalid_frame_id");
      return;
    }
    callsite = st_callsite_row(&m->stacks, callsite, frame - 1);
  }
  if (callsite == ST_NO_ROW) {
    st_count_error(m, "stackprofile_empty_callstack");
    return;
  }
  uint32_t* known = own(m, profiler, STACKS, st_message_find(stack, IID).value);
  if (!*known)
    *known = callsite + 1;
}

/* Calls `each` for the messages of a field. */
static void for_each(struct st_importer* m, uint32_t profiler,
                     struct st_field packet, uint32_t field,
                     void (*each)(struct st_importer*, uint32_t,
                                  struct st_field)) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, packet.data, packet.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == field && f.data)
      each(m, profiler, f);
  }
}

/* Counts what a dump says about the profiled process. */
static void count_dump(struct st_importer* m, const struct st_field* f) {
  static const struct {
    uint8_t field;
    const char *name, *severity;
  } kFlags[] = {
      {DUMP_DISCONNECTED, "heapprofd_client_disconnected", "info"},
      {DUMP_CORRUPTED, "heapprofd_buffer_corrupted", "error"},
      {DUMP_OVERRAN, "heapprofd_buffer_overran", "data_loss"},
      {DUMP_REJECTED, "heapprofd_rejected_concurrent", "error"},
      {DUMP_GUARDRAIL, "heapprofd_hit_guardrail", "error"},
  };
  static const struct {
    uint8_t field;
    const char* name;
  } kStats[] = {
      {STATS_UNWINDING_TIME, "heapprofd_unwind_time_us"},
      {STATS_SAMPLES, "heapprofd_unwind_samples"},
      {STATS_BLOCKED, "heapprofd_client_spinlock_blocked"},
  };
  int32_t pid = (int32_t)f[DUMP_PID].value;
  for (uint32_t i = 0; i < sizeof kFlags / sizeof *kFlags; i++) {
    bool is_set =
        f[kFlags[i].field].value || (kFlags[i].field == DUMP_OVERRAN &&
                                     f[DUMP_ERROR].value == ERROR_TIMEOUT);
    if (is_set)
      st_increment_stat(m, kFlags[i].name, pid, kFlags[i].severity, "trace", 1);
  }
  if (f[DUMP_ERROR].value)
    st_set_stat(m, "heapprofd_client_error", pid, "error", "trace",
                (int64_t)f[DUMP_ERROR].value);
  if (f[DUMP_ORIGINAL_INTERVAL].value)
    st_set_stat(
        m, "heapprofd_sampling_interval_adjusted", pid, "info", "trace",
        (int64_t)(f[DUMP_INTERVAL].value - f[DUMP_ORIGINAL_INTERVAL].value));
  for (uint32_t i = 0; i < sizeof kStats / sizeof *kStats; i++)
    st_increment_stat(
        m, kStats[i].name, pid, "info", "trace",
        (int64_t)st_message_find(f[DUMP_STATS], kStats[i].field).value);
}

static struct st_heap_totals read_totals(const struct st_field* f,
                                         bool has_counts) {
  if (f[SAMPLE_MAX].number)
    return (struct st_heap_totals){
        .allocated = {has_counts ? f[SAMPLE_MAX_COUNT].value : 0,
                      f[SAMPLE_MAX].value}};
  return (struct st_heap_totals){
      .allocated = {f[SAMPLE_ALLOCATIONS].value, f[SAMPLE_ALLOCATED].value},
      .freed = {f[SAMPLE_FREES].value, f[SAMPLE_FREED].value}};
}

/* Keeps the samples of a process until the profile is complete. */
static void keep_samples(struct st_importer* m, uint32_t profiler,
                         struct st_field dump, const struct st_field* f,
                         int64_t ts) {
  st_string heap = f[DUMP_HEAP].size ? st_field_text(&m->storage, f[DUMP_HEAP])
                                     : st_intern(&m->storage, "unknown");
  struct st_decoder d;
  struct st_field sample, s[SAMPLE_MAX_COUNT + 1];
  st_decoder_init(&d, dump.data, dump.size);
  while (st_decoder_next(&d, &sample)) {
    if (sample.number != DUMP_SAMPLES || !sample.data)
      continue;
    st_message_read(sample, s, SAMPLE_MAX_COUNT + 1);
    *ST_PUSH(&m->heap_profiles.profilers.data[profiler].pending) =
        (struct st_heap_sample){
            .ts = ts,
            .pid = f[DUMP_PID].value,
            .stack = s[SAMPLE_STACK].value,
            .heap = heap,
            .totals = read_totals(s, f[DUMP_ORIGINAL_INTERVAL].value > 0)};
  }
}

static void read_dump(struct st_importer* m, uint32_t profiler,
                      struct st_field dump, int64_t packet_ts) {
  struct st_field f[DUMP_ERROR + 1];
  int64_t ts;
  st_message_read(dump, f, DUMP_ERROR + 1);
  if (!st_clocks_convert(&m->machine->clocks, CLOCK_MONOTONIC_COARSE,
                         (int64_t)f[DUMP_TIMESTAMP].value, &ts))
    return;
  st_set_stat(m, "heapprofd_last_profile_timestamp", (int32_t)f[DUMP_PID].value,
              "info", "trace", packet_ts);
  count_dump(m, f);
  keep_samples(m, profiler, dump, f, ts);
}

static void add_row(struct st_importer* m, const struct st_heap_sample* sample,
                    uint32_t upid, uint32_t callsite, uint64_t count,
                    uint64_t size) {
  struct st_table* t = &m->storage.tables[ST_ALLOCATION_TABLE];
  if (!count && !size)
    return;
  struct st_cell cells[ST_ALLOCATION_COLUMNS] = {
      [ST_ALLOCATION_id] = st_int(t->rows),
      [ST_ALLOCATION_ts] = st_int(sample->ts),
      [ST_ALLOCATION_upid] = st_int(upid),
      [ST_ALLOCATION_heap_name] = st_text(sample->heap),
      [ST_ALLOCATION_callsite_id] = st_int(callsite),
      [ST_ALLOCATION_count] = st_int((int64_t)count),
      [ST_ALLOCATION_size] = st_int((int64_t)size),
  };
  st_table_add(t, cells);
}

/* Returns the totals of a stack, corrected if it has become another callsite.
 */
static struct st_heap_totals corrected(struct st_importer* m, uint32_t profiler,
                                       const struct st_heap_sample* sample,
                                       uint32_t upid, uint32_t callsite,
                                       const struct st_heap_totals* before) {
  struct st_heap_profiles* h = &m->heap_profiles;
  uint32_t stack = st_key_number(&h->stack_keys,
                                 (struct st_key){profiler, sample->stack, 0});
  if (stack == h->corrections.size)
    *ST_PUSH(&h->corrections) = (struct st_heap_totals){0};
  uint32_t known = h->seen.keys.size;
  struct st_key key = {stack, (uint64_t)upid << 32 | sample->heap, callsite};
  if (st_key_number(&h->seen, key) == known)
    h->corrections.data[stack] = *before;
  const struct st_heap_totals* c = &h->corrections.data[stack];
  struct st_heap_totals t = sample->totals;
  t.allocated.count += c->allocated.count;
  t.allocated.size += c->allocated.size;
  t.freed.count += c->freed.count;
  t.freed.size += c->freed.size;
  return t;
}

static struct st_heap_sums difference(struct st_heap_sums now,
                                      struct st_heap_sums before) {
  return (struct st_heap_sums){now.count - before.count,
                               now.size - before.size};
}

static bool is_negative(struct st_heap_sums sums) {
  return (int64_t)sums.count < 0 || (int64_t)sums.size < 0;
}

static void add_differences(struct st_importer* m,
                            const struct st_heap_sample* sample, uint32_t upid,
                            uint32_t callsite, struct st_heap_sums allocated,
                            struct st_heap_sums freed) {
  add_row(m, sample, upid, callsite, allocated.count, allocated.size);
  /* Android's runtime reports no frees. */
  if (sample->heap != st_intern(&m->storage, "com.android.art"))
    add_row(m, sample, upid, callsite, -freed.count, -freed.size);
}

/* Adds the rows of a sample: what was allocated, and what was freed, since the
 * previous profile. */
static void add_sample(struct st_importer* m, uint32_t profiler,
                       uint32_t generation,
                       const struct st_heap_sample* sample) {
  struct st_heap_profiles* h = &m->heap_profiles;
  uint32_t upid = st_process_get(&m->processes, (uint32_t)sample->pid);
  uint32_t callsite = *own(m, profiler, STACKS, sample->stack);
  callsite = callsite ? callsite - 1
                      : st_interned_stack(m, generation, upid, sample->stack);
  if (callsite == ST_NO_ROW)
    return;
  struct st_key key = {profiler, upid, callsite};
  uint32_t number = st_key_number(&h->total_keys, key);
  if (number == h->totals.size)
    *ST_PUSH(&h->totals) = (struct st_heap_totals){0};
  struct st_heap_totals before = h->totals.data[number];
  struct st_heap_totals now =
      corrected(m, profiler, sample, upid, callsite, &before);
  struct st_heap_sums allocated = difference(now.allocated, before.allocated);
  struct st_heap_sums freed = difference(now.freed, before.freed);
  if (is_negative(allocated) || is_negative(freed)) {
    st_increment_stat(m, "heapprofd_malformed_packet", upid, "error", "trace",
                      1);
    return;
  }
  add_differences(m, sample, upid, callsite, allocated, freed);
  h->totals.data[number] = now;
}

static void complete(struct st_importer* m, uint32_t profiler,
                     uint32_t generation) {
  struct st_heap_profiler* p = &m->heap_profiles.profilers.data[profiler];
  for (uint32_t i = 0; i < p->pending.size; i++)
    add_sample(m, profiler, generation, &p->pending.data[i]);
  p->pending.size = 0;
  p->profiles++;
}

static void check_index(struct st_importer* m, struct st_heap_profiler* p,
                        uint64_t index) {
  uint64_t expected = p->has_index ? p->index + 1 : 0;
  if (index != expected)
    st_count_error(m, "heapprofd_missing_packet");
  p->has_index = true;
  p->index = index;
}

void st_parse_heap_profile(struct st_importer* m, const struct st_event* e,
                           uint32_t generation) {
  struct st_field packet = {.data = e->data, .size = e->size};
  uint32_t profiler = profiler_of(m, generation);
  struct st_decoder d;
  struct st_field f;
  check_index(m, &m->heap_profiles.profilers.data[profiler],
              st_message_find(packet, INDEX).value);
  for_each(m, profiler, packet, STRINGS, define_string);
  for_each(m, profiler, packet, MAPPINGS, define_mapping);
  for_each(m, profiler, packet, FRAMES, define_frame);
  for_each(m, profiler, packet, STACKS, define_stack);
  st_decoder_init(&d, packet.data, packet.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == DUMPS && f.data)
      read_dump(m, profiler, f, e->ts);
  }
  if (!st_message_find(packet, CONTINUED).value)
    complete(m, profiler, generation);
}

void st_heap_profiles_free(struct st_heap_profiles* h) {
  for (uint32_t i = 0; i < h->profilers.size; i++)
    free(h->profilers.data[i].pending.data);
  free(h->profilers.data);
  free(h->own.data);
  free(h->totals.data);
  free(h->corrections.data);
  st_map_free(&h->by_interning);
  st_keys_free(&h->own_keys);
  st_keys_free(&h->total_keys);
  st_keys_free(&h->stack_keys);
  st_keys_free(&h->seen);
}
