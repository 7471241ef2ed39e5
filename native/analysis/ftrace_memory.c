/* Parses kernel events of memory: sizes of processes, buffers, migrations. */
#include "ftrace_events.h"
#include "importer.h"

enum {
  ION_HEAP_SHRINK = 314,
  ION_HEAP_GROW = 315,
  RSS_STAT = 313,
  OOM_SCORE_ADJ_UPDATE = 326,
  MM_EVENT_RECORD = 328,
  MARK_VICTIM = 334,
  ION_STAT = 335,
  DMA_HEAP_STAT = 351,
  RSS_STAT_THROTTLED = 359,
  CMA_ALLOC_START = 465,
  CMA_ALLOC_INFO = 466,
  CMA_ALLOC_FINISH = 576,
  MIGRATE_RANGE_INFO = 577,

  KERNEL_5_10 = 5 << 16 | 10,
  KERNEL_6_1 = 6 << 16 | 1,
};

/* The tracks of counters of processes, by st_thread_counter.kind. */
enum { RSS, OOM_SCORE, MM_EVENT };

static void add_thread_counter(struct st_importer* m, int64_t ts, double value,
                               struct st_thread_counter counter) {
  counter.row = st_add_counter(m, ts, 0, value);
  *ST_PUSH(&m->machine->kinds.counters) = counter;
}

static struct st_fixed_track track_of(struct st_importer* m,
                                      const struct st_thread_counter* c,
                                      uint32_t upid) {
  static const char* const kTypes[][2] = {
      [RSS] = {"process_memory", "process_memory_thread_fallback"},
      [OOM_SCORE] = {"oom_score_adj", "oom_score_adj_thread_fallback"},
      [MM_EVENT] = {"mm_event", "mm_event_thread_fallback"}};
  bool has_process = upid != ST_NO_ROW;
  st_string key = c->key ? st_intern(&m->storage, c->key) : 0;
  struct st_fixed_track f = {
      .type = kTypes[c->kind][!has_process],
      .is_counter = true,
      .name = st_intern(&m->storage, "oom_score_adj"),
      .dimensions = {{has_process ? "upid" : "utid",
                      .number = has_process ? upid : c->utid}}};
  if (c->kind == RSS) {
    f.name = st_kernel_text(m, "mem.%s", c->key);
    f.dimensions[1] = (struct st_dimension){"process_memory_key", .text = key};
  } else if (c->kind == MM_EVENT) {
    f.name = st_kernel_text(m, "mem.mm.%s.%s", c->key, c->metric);
    f.dimensions[1] = (struct st_dimension){"mm_event_type", .text = key};
    f.dimensions[2] = (struct st_dimension){
        "mm_event_metric", .text = st_intern(&m->storage, c->metric)};
  }
  return f;
}

void st_finish_kernel_counters(struct st_importer* m) {
  for (uint32_t i = 0; i < m->machine->kinds.counters.size; i++) {
    const struct st_thread_counter* c = &m->machine->kinds.counters.data[i];
    struct st_fixed_track f =
        track_of(m, c, m->processes.threads.data[c->utid].upid);
    st_table_set(&m->storage.tables[ST_COUNTER_TABLE], c->row,
                 ST_COUNTER_track_id,
                 st_int(st_tracks_fixed_row(&m->tracks, &f)));
  }
}

/* Returns the thread whose memory an event is about; ST_NO_ROW if it is
 * unknown.  The thread that changes an address space need not be of its
 * process. */
static uint32_t thread_of_space(struct st_importer* m, uint64_t space,
                                bool is_own, uint32_t pid) {
  uint32_t* known = st_map_at(&m->machine->kinds.mm_threads, space);
  if (!is_own && !*known)
    return ST_NO_ROW;
  uint32_t utid = st_thread_seen(&m->processes, pid);
  if (is_own) {
    *known = utid + 1;
    return utid;
  }
  /* The thread is about to get another address space, or has ended. */
  if (*known - 1 == utid || !st_thread_is_alive(&m->processes, *known - 1))
    *known = 0;
  return *known - 1;
}

static void parse_rss(struct st_importer* m, const struct st_kernel_event* e,
                      const struct st_field* f) {
  static const char* const kKeys[] = {"rss.file", "rss.anon", "swap",
                                      "rss.shmem", "unreclaimable"};
  struct st_kernel_kinds* k = &m->machine->kinds;
  bool is_throttled = e->field == RSS_STAT_THROTTLED;
  struct st_field current = f[is_throttled ? 1 : 3];
  struct st_field space = f[is_throttled ? 3 : 4];
  uint32_t member = (uint32_t)f[is_throttled ? 2 : 1].value;
  int64_t size = (int64_t)f[is_throttled ? 4 : 2].value;
  if (size < 0) {
    k->counts.negative_sizes++;
    return;
  }
  uint32_t utid = is_throttled || (current.number && space.number)
                      ? thread_of_space(m, (uint32_t)space.value,
                                        current.value != 0, e->pid)
                      : st_thread_seen(&m->processes, e->pid);
  if (utid == ST_NO_ROW) {
    k->counts.unknown_spaces++;
    return;
  }
  add_thread_counter(m, e->ts, (double)size,
                     (struct st_thread_counter){
                         .utid = utid,
                         .kind = RSS,
                         .key = member < 5 ? kKeys[member] : "unknown"});
}

static void parse_mm_event(struct st_importer* m,
                           const struct st_kernel_event* e,
                           const struct st_field* f) {
  static const char* const kTypes[] = {"min_flt",    "maj_flt", "read_io",
                                       "compaction", "reclaim", "swp_flt",
                                       "kern_alloc"};
  static const struct {
    const char* name;
    uint8_t field;
  } kMetrics[] = {{"count", 2}, {"max_lat", 3}, {"avg_lat", 1}};
  uint32_t type = (uint32_t)f[4].value;
  uint32_t utid = st_thread_seen(&m->processes, e->pid);
  if (type >= sizeof kTypes / sizeof *kTypes) {
    m->machine->kinds.counts.unknown_memory++;
    return;
  }
  for (uint32_t i = 0; i < 3; i++)
    add_thread_counter(m, e->ts, (double)(uint32_t)f[kMetrics[i].field].value,
                       (struct st_thread_counter){.utid = utid,
                                                  .kind = MM_EVENT,
                                                  .key = kTypes[type],
                                                  .metric = kMetrics[i].name});
}

static void parse_oom(struct st_importer* m, const struct st_kernel_event* e,
                      const struct st_field* f) {
  if (e->field == MARK_VICTIM) {
    st_kernel_begin(m, e->ts, 0,
                    st_kernel_thread_track(m, (uint32_t)f[1].value), NULL,
                    st_intern(&m->storage, "mem.oom_kill"), NULL, 0);
    return;
  }
  uint32_t utid = st_thread_seen(&m->processes, (uint32_t)f[3].value);
  add_thread_counter(
      m, e->ts, (double)(int16_t)f[2].value,
      (struct st_thread_counter){.utid = utid, .kind = OOM_SCORE});
}

/* Adds or removes a buffer on the tracks of all buffers. */
static void parse_buffer(struct st_importer* m, int64_t ts, const char* type,
                         const char* name, uint64_t id, int64_t length) {
  struct st_fixed_track f = {.type = type,
                             .name = st_intern(&m->storage, name)};
  bool is_begin = length > 0;
  uint32_t row = st_tracks_async_row(&m->tracks, &f, id,
                                     is_begin ? ST_USE_BEGIN : ST_USE_END);
  if (is_begin)
    st_kernel_begin(m, ts, -1, row, NULL,
                    st_kernel_text(m, "%lld kB", (long long)(length / 1024)),
                    NULL, 0);
  else
    st_kernel_end(m, ts, row, NULL, 0, NULL, 0);
}

/* Sets the size of a heap of ION, and the change by the thread. */
static void set_heap(struct st_importer* m, const struct st_kernel_event* e,
                     struct st_field heap, double total, double change) {
  bool has_name = heap.size > 0;
  st_string text = has_name ? st_field_text(&m->storage, heap) : 0;
  struct st_fixed_track f = {
      .type = "ion",
      .name = st_kernel_name(m, heap, has_name ? "mem.ion." : "mem.ion", ""),
      .is_counter = true,
      .dimensions = {{"heap_name", .text = text, .is_text = true}}};
  st_kernel_counter(m, e->ts, &f, total, NULL, 0);
  f.type = "ion_change";
  f.name = st_kernel_name(m, heap,
                          has_name ? "mem.ion_change." : "mem.ion_change", "");
  f.dimensions[1] = (struct st_dimension){
      "utid", .number = st_thread_seen(&m->processes, e->pid)};
  st_kernel_counter(m, e->ts, &f, change, NULL, 0);
}

static void parse_ion(struct st_importer* m, const struct st_kernel_event* e,
                      const struct st_field* f) {
  static const char kUnknown[] = "unknown";
  int64_t length = (int64_t)f[2].value;
  if (e->field == ION_STAT) {
    set_heap(m, e, (struct st_field){0}, (double)f[3].value, (double)length);
    parse_buffer(m, e->ts, "android_ion_allocations", "mem.ion_buffer",
                 (uint32_t)f[1].value, length);
    return;
  }
  struct st_field heap = f[1];
  if (!heap.number)
    heap = (struct st_field){.data = (const uint8_t*)kUnknown,
                             .size = sizeof kUnknown - 1};
  /* The total is that before the change. */
  uint64_t change = e->field == ION_HEAP_GROW ? f[2].value : -f[2].value;
  set_heap(m, e, heap, (double)(int64_t)(f[3].value + change),
           (double)(int64_t)change);
}

static void parse_dma(struct st_importer* m, const struct st_kernel_event* e,
                      const struct st_field* f) {
  struct st_fixed_track track = {.type = "android_dma_heap",
                                 .name = st_intern(&m->storage, "mem.dma_heap"),
                                 .is_counter = true};
  st_kernel_counter(m, e->ts, &track, (double)f[3].value, NULL, 0);
  track.type = "android_dma_heap_change";
  track.name = st_intern(&m->storage, "mem.dma_heap_change");
  track.dimensions[0] = (struct st_dimension){
      "utid", .number = st_thread_seen(&m->processes, e->pid)};
  struct st_kernel_arg inode = {"inode", ST_ARG_UINT, (int64_t)f[1].value};
  st_kernel_counter(m, e->ts, &track, (double)(int64_t)f[2].value, &inode, 1);
  parse_buffer(m, e->ts, "android_dma_allocations", "mem.dma_buffer",
               f[1].value, (int64_t)f[2].value);
}

static struct st_migration* migration_of(struct st_importer* m, uint32_t utid) {
  struct st_kernel_kinds* k = &m->machine->kinds;
  uint32_t* number = st_map_at(&k->migrations, utid);
  if (!*number) {
    *ST_PUSH(&k->migration_counts) = (struct st_migration){0};
    *number = k->migration_counts.size;
  }
  return &k->migration_counts.data[*number - 1];
}

/* Ends an allocation of contiguous memory.  From Linux 6.1 on, the counts of
 * migrated pages come with an earlier event. */
static void end_contiguous(struct st_importer* m,
                           const struct st_kernel_event* e,
                           const struct st_field* f) {
  bool is_info = e->field == CMA_ALLOC_INFO;
  struct st_migration counts = {f[8].value, f[9].value, f[7].value};
  if (!is_info)
    counts = *migration_of(m, st_thread_seen(&m->processes, e->pid));
  const struct st_kernel_arg args[] = {
      {"cma_name", ST_ARG_STRING,
       st_field_text(&m->storage, f[is_info ? 6 : 1])},
      {"cma_pfn", ST_ARG_UINT, (int64_t)f[is_info ? 10 : 2].value},
      {"cma_req_pages", ST_ARG_UINT, (int64_t)f[is_info ? 2 : 4].value},
      {"cma_nr_migrated", ST_ARG_UINT, (int64_t)counts.migrated},
      {"cma_nr_reclaimed", ST_ARG_UINT, (int64_t)counts.reclaimed},
      {"cma_nr_mapped", ST_ARG_UINT, (int64_t)counts.mapped},
      {"cma_nr_isolate_fail", ST_ARG_UINT, (uint32_t)f[3].value},
      {"cma_nr_migrate_fail", ST_ARG_UINT, (uint32_t)f[4].value},
      {"cma_nr_test_fail", ST_ARG_UINT, (uint32_t)f[5].value},
  };
  st_kernel_end(m, e->ts, st_kernel_thread_track(m, e->pid), NULL, 0, args,
                is_info ? 9 : 6);
}

static void parse_contiguous(struct st_importer* m,
                             const struct st_kernel_event* e,
                             const struct st_field* f) {
  uint32_t kernel = m->machine->kernel;
  bool is_new = kernel >= KERNEL_6_1;
  bool is_used =
      e->field == CMA_ALLOC_START
          ? kernel >= KERNEL_5_10
          : is_new == (e->field != CMA_ALLOC_INFO) && kernel >= KERNEL_5_10;
  if (!is_used)
    return;
  if (e->field == CMA_ALLOC_START) {
    uint32_t track = st_kernel_thread_track(m, e->pid);
    if (is_new)
      *migration_of(m, st_thread_seen(&m->processes, e->pid)) =
          (struct st_migration){0};
    st_kernel_begin(m, e->ts, -1, track, NULL,
                    st_intern(&m->storage, "mm_cma_alloc"), NULL, 0);
  } else if (e->field == MIGRATE_RANGE_INFO) {
    *migration_of(m, st_thread_seen(&m->processes, e->pid)) =
        (struct st_migration){f[3].value, f[4].value, f[5].value};
  } else {
    end_contiguous(m, e, f);
  }
}

bool st_parse_memory_event(struct st_importer* m,
                           const struct st_kernel_event* e,
                           const struct st_field* f) {
  switch (e->field) {
    case RSS_STAT:
    case RSS_STAT_THROTTLED:
      parse_rss(m, e, f);
      return true;
    case MM_EVENT_RECORD:
      parse_mm_event(m, e, f);
      return true;
    case OOM_SCORE_ADJ_UPDATE:
    case MARK_VICTIM:
      parse_oom(m, e, f);
      return true;
    case ION_STAT:
    case ION_HEAP_GROW:
    case ION_HEAP_SHRINK:
      parse_ion(m, e, f);
      return true;
    case DMA_HEAP_STAT:
      parse_dma(m, e, f);
      return true;
    case CMA_ALLOC_START:
    case CMA_ALLOC_INFO:
    case CMA_ALLOC_FINISH:
    case MIGRATE_RANGE_INFO:
      parse_contiguous(m, e, f);
      return true;
    default:
      return false;
  }
}
