/* Reads bundles of kernel events, in the order of the file. */
#include "core/fields.h"
#include "importer.h"

enum {
  /* FtraceEventBundle */
  BUNDLE_CPU = 1,
  BUNDLE_EVENT = 2,
  BUNDLE_LOST_EVENTS = 3,
  BUNDLE_COMPACT_SCHED = 4,
  BUNDLE_CLOCK = 5,
  BUNDLE_FTRACE_TIMESTAMP = 6,
  BUNDLE_BOOT_TIMESTAMP = 7,
  BUNDLE_LAST_READ = 9,
  BUNDLE_PREVIOUS_END = 10,
  BUNDLE_DESCRIPTOR = 11,
  /* FtraceEvent */
  EVENT_TIMESTAMP = 1,
  /* FtraceClock */
  CLOCK_UNSPECIFIED = 0,
  CLOCK_MONO_RAW = 4,
  CLOCK_MONOTONIC_RAW = 5,
  /* CompactSched.  The first array of the switches (field 1), and that of the
   * wakeups, contain timestamps. */
  COMPACT_STRINGS = 5,
  SWITCH_COMM = 6,
  WAKING_FIRST = 7,
  WAKING_COMM = 11,
  WAKING_FLAGS = 12,
  COMPACT_FIELDS,
};

struct bundle {
  uint64_t cpu, clock, ftrace_ts, boot_ts, start;
  bool has_cpu, has_clock, has_ftrace_ts, has_boot_ts, has_start, is_lossy;
  struct st_field compact;
};

/* The importer that gets the events of a bundle, and the bundle's CPU and
 * clock. */
struct target {
  struct st_importer* m;
  uint32_t cpu, generation;
  uint64_t clock;
};

static void read_header(struct bundle* b, const uint8_t* data, size_t size) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == BUNDLE_CPU)
      b->has_cpu = true, b->cpu = (uint32_t)f.value;
    else if (f.number == BUNDLE_LOST_EVENTS)
      b->is_lossy = f.value != 0;
    else if (f.number == BUNDLE_COMPACT_SCHED && f.data)
      b->compact = f;
    else if (f.number == BUNDLE_CLOCK)
      b->has_clock = true, b->clock = f.value;
    else if (f.number == BUNDLE_FTRACE_TIMESTAMP)
      b->has_ftrace_ts = true, b->ftrace_ts = f.value;
    else if (f.number == BUNDLE_BOOT_TIMESTAMP)
      b->has_boot_ts = true, b->boot_ts = f.value;
    else if (f.number == BUNDLE_LAST_READ || f.number == BUNDLE_PREVIOUS_END)
      b->has_start = true, b->start = f.value;
  }
}

/* Returns the id of the bundle's clock.  If the clock isn't BOOTTIME, the
 * bundle's pair of timestamps is added as a snapshot of both clocks. */
static uint64_t clock_of(struct st_importer* m, const struct bundle* b,
                         uint32_t sequence) {
  uint64_t clock = ST_CLOCK_BOOTTIME;
  if (!b->has_clock)
    return clock;
  if (b->clock == CLOCK_MONO_RAW)
    clock = CLOCK_MONOTONIC_RAW;
  else if (b->clock != CLOCK_UNSPECIFIED)
    clock = st_clock_id(&m->machine->clocks, ST_FIRST_SEQUENCE_CLOCK, sequence);
  if (clock != ST_CLOCK_BOOTTIME && b->has_ftrace_ts && b->has_boot_ts &&
      m->machine->last_ftrace_clock != (int64_t)b->ftrace_ts) {
    st_clocks_add_pair(&m->machine->clocks, clock, (int64_t)b->ftrace_ts,
                       ST_CLOCK_BOOTTIME, (int64_t)b->boot_ts);
    m->machine->last_ftrace_clock = (int64_t)b->ftrace_ts;
  }
  return clock;
}

/* Queues an event of a CPU.  Returns false if its timestamp can't be
 * converted. */
static bool push(const struct target* t, enum st_queue_kind kind, int64_t ts,
                 struct st_event event) {
  struct st_importer* m = t->m;
  if (!st_clocks_convert(&m->machine->clocks, t->clock, ts, &event.ts)) {
    m->counts.clock_failures++;
    return false;
  }
  if (event.ts < 0)
    m->counts.negative_timestamps++;
  else
    st_sorter_push(&m->sorter, kind, t->cpu, event);
  return true;
}

static void read_event(const struct target* t, struct st_field event) {
  struct st_importer* m = t->m;
  struct st_decoder d;
  struct st_field f;
  bool has_ts = false, has_id = false, is_first = true;
  uint64_t ts = 0;
  size_t head = 0; /* The bytes of the timestamp, if it comes first. */
  st_decoder_init(&d, event.data, event.size);
  while (!(has_ts && has_id) && st_decoder_next(&d, &f)) {
    if (f.number == EVENT_TIMESTAMP && !has_ts) {
      has_ts = true, ts = f.value;
      head = is_first ? (size_t)(d.cur - event.data) : 0;
    }
    has_id |= f.data != NULL;
    is_first = false;
  }
  if (!has_ts) {
    m->ftrace.bundle_errors++;
  } else if (!has_id) {
    m->ftrace.missing_ids++;
  } else {
    push(t, ST_QUEUE_FTRACE, (int64_t)ts,
         (struct st_event){.data = event.data + head,
                           .size = (uint32_t)(event.size - head),
                           .generation = t->generation});
  }
}

/* The read positions in the arrays of CompactSched, by field number. */
struct arrays {
  const uint8_t *at[COMPACT_FIELDS], *end[COMPACT_FIELDS];
};

static bool has_more(const struct arrays* a, uint32_t field) {
  return a->at[field] && a->at[field] < a->end[field];
}

/* Reads the next element of an array.  Returns false if it is malformed. */
static bool next(struct arrays* a, uint32_t field, uint64_t* value) {
  a->at[field] = st_get_varint(a->at[field], a->end[field], value);
  return a->at[field] != NULL;
}

/* Returns how many of the five arrays have unread elements. */
static uint32_t count_open(const struct arrays* a, const uint32_t fields[5]) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < 5; i++)
    count += has_more(a, fields[i]);
  return count;
}

/* Reads an element of each of the five arrays into `row`.  For wakeups, also
 * reads an element of the flags; without one, it is 0.  Returns false if an
 * element is malformed. */
static bool next_row(struct arrays* a, const uint32_t fields[5],
                     uint64_t row[6]) {
  for (uint32_t i = 0; i < 5; i++) {
    if (!next(a, fields[i], &row[i]))
      return false;
  }
  row[5] = 0;
  return !has_more(a, WAKING_FLAGS) || fields[0] != WAKING_FIRST ||
         next(a, WAKING_FLAGS, &row[5]);
}

typedef ST_ARRAY(st_string) string_list;

static struct st_event compact_event(const uint64_t row[6], st_string comm,
                                     bool is_switch) {
  if (is_switch)
    return (struct st_event){.comm = comm,
                             .size = (uint32_t)row[1],
                             .pid = (uint32_t)row[2],
                             .priority = (int32_t)row[3]};
  return (struct st_event){
      .comm = comm,
      .pid = (uint32_t)row[1],
      .size = (uint16_t)row[5],
      .woken = {.target_cpu = (uint16_t)row[2], .priority = (uint16_t)row[3]}};
}

static void read_rows(const struct target* t, struct arrays* a,
                      const string_list* strings, bool is_switch) {
  static const uint32_t kFields[2][5] = {{7, 8, 9, 10, WAKING_COMM},
                                         {1, 2, 3, 4, SWITCH_COMM}};
  const uint32_t* fields = kFields[is_switch];
  uint64_t row[6], ts = 0;
  bool valid = true;
  while (valid && count_open(a, fields) == 5) {
    valid = next_row(a, fields, row) && row[4] < strings->size;
    if (!valid)
      break;
    ts += row[0];
    struct st_event e = compact_event(row, strings->data[row[4]], is_switch);
    if (!push(t, is_switch ? ST_QUEUE_SWITCH : ST_QUEUE_WAKING, (int64_t)ts, e))
      return;
  }
  if (!valid || count_open(a, fields))
    t->m->ftrace.compact_errors++;
}

static void read_compact(const struct target* t, struct st_field compact) {
  struct st_importer* m = t->m;
  struct arrays a = {0};
  string_list strings = {0};
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, compact.data, compact.size);
  while (st_decoder_next(&d, &f)) {
    if (!f.data)
      continue;
    if (f.number == COMPACT_STRINGS) {
      /* The list is in the arena, so that it is freed even if memory is
       * exhausted. */
      if (strings.size == strings.capacity) {
        uint32_t capacity = strings.capacity * 2 + 64;
        st_string* grown =
            st_bytes_take(&m->arena, capacity * sizeof *strings.data);
        for (uint32_t i = 0; i < strings.size; i++)
          grown[i] = strings.data[i];
        strings.data = grown;
        strings.capacity = capacity;
      }
      strings.data[strings.size++] =
          st_string_add(&m->storage.strings, f.data, f.size);
    } else if (f.number < COMPACT_FIELDS) {
      a.at[f.number] = f.data;
      a.end[f.number] = f.data + f.size;
    }
  }
  read_rows(t, &a, &strings, true);
  read_rows(t, &a, &strings, false);
}

/* Reads the time from which on the CPU's events are complete, if this is the
 * first bundle of the CPU. */
static void read_start(const struct target* t, const struct bundle* b) {
  struct st_ftrace* ftrace = &t->m->ftrace;
  uint32_t* is_seen =
      st_map_at(&ftrace->seen_cpus, st_ucpu(&t->m->machine->cpus, t->cpu));
  int64_t ts;
  if (*is_seen)
    return;
  *is_seen = 1;
  if (!b->has_start || !st_clocks_convert(&t->m->machine->clocks, t->clock,
                                          (int64_t)b->start, &ts))
    return;
  if (ftrace->has_latest_start && ts <= ftrace->latest_start)
    return;
  ftrace->has_latest_start = true;
  ftrace->latest_start = ts;
  st_add_metadata(t->m, "ftrace_latest_data_start_ns", false, st_int(ts), 0);
}

void st_read_ftrace(struct st_importer* m, uint32_t sequence, uint32_t index,
                    const uint8_t* data, size_t size) {
  struct bundle b = {0};
  struct st_decoder d;
  struct st_field f;
  read_header(&b, data, size);
  if (!b.has_cpu || b.cpu >= ST_MAX_CPUS) {
    m->ftrace.bundle_errors++;
    return;
  }
  if (b.is_lossy)
    st_set_stat(m, "ftrace_cpu_has_data_loss", (int64_t)b.cpu, "data_loss",
                "trace", 1);
  struct target t = {m, (uint32_t)b.cpu,
                     m->sequences.sequences.data[index].generation,
                     clock_of(m, &b, sequence)};
  if (b.compact.data)
    read_compact(&t, b.compact);
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == BUNDLE_EVENT && f.data)
      read_event(&t, f);
    else if (f.number == BUNDLE_DESCRIPTOR && f.data)
      st_raw_add_descriptor(m, f);
  }
  read_start(&t, &b);
}

void st_ftrace_free(struct st_ftrace* f) {
  st_map_free(&f->seen_cpus);
  st_map_free(&f->failed_sequences);
}
