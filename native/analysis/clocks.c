#include "clocks.h"

#include <stdlib.h>
#include <string.h>

#include "core/decoder.h"
#include "core/fields.h"

enum { MAX_HOPS = 4, MAX_VISITS = 256, MAX_MEMBERS = 64 };

void st_clocks_init(struct st_clocks* c, uint32_t machine) {
  *c = (struct st_clocks){.machine = machine, .trace_clock = ST_CLOCK_BOOTTIME};
}

static uint32_t clock_number(struct st_clocks* c, uint64_t id) {
  uint32_t* number = st_map_at(&c->by_id, id);
  if (!*number) {
    *ST_PUSH(&c->clocks) = (struct st_clock){.id = id, .unit = 1};
    *number = c->clocks.size;
  }
  return *number - 1;
}

struct reading {
  uint64_t id, value, unit;
  bool is_incremental;
};

static struct reading read_clock(const uint8_t* data, size_t size) {
  struct reading r = {.unit = 1};
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_CLOCK_SNAPSHOT_CLOCK_CLOCK_ID)
      r.id = f.value;
    else if (f.number == ST_FIELD_CLOCK_SNAPSHOT_CLOCK_TIMESTAMP)
      r.value = f.value;
    else if (f.number == ST_FIELD_CLOCK_SNAPSHOT_CLOCK_IS_INCREMENTAL)
      r.is_incremental = f.value != 0;
    else if (f.number == ST_FIELD_CLOCK_SNAPSHOT_CLOCK_UNIT_MULTIPLIER_NS)
      r.unit = f.value ? f.value : 1;
  }
  return r;
}

/* Adds a clock to the snapshot that is being read. */
static bool add_reading(struct st_clocks* c, struct reading r,
                        uint32_t sequence) {
  bool own = r.id >= ST_FIRST_SEQUENCE_CLOCK && r.id <= ST_LAST_SEQUENCE_CLOCK;
  if ((own && !sequence) || (r.is_incremental && !own))
    return false;
  uint32_t number = clock_number(c, st_clock_id(c, r.id, sequence));
  struct st_clock* clock = &c->clocks.data[number];
  bool is_new = !clock->series.size;
  if (!is_new && (clock->unit != (int64_t)r.unit ||
                  clock->is_incremental != r.is_incremental))
    return false;
  if (clock->id == c->trace_clock && r.unit != 1)
    return false;
  if (c->members.size == MAX_MEMBERS)
    return false;
  for (uint32_t i = 0; i < c->members.size; i++) {
    if (c->members.data[i] == number)
      return false;
  }
  clock->unit = (int64_t)r.unit;
  clock->is_incremental = r.is_incremental;
  *ST_PUSH(&c->members) = number;
  *ST_PUSH(&c->readings) = (int64_t)(r.value * r.unit);
  return true;
}

static struct st_clock_series* find_series(struct st_clocks* c) {
  uint32_t width = c->members.size;
  uint64_t hash = width;
  for (uint32_t i = 0; i < width; i++)
    hash = st_mix(hash ^ c->members.data[i]) + i;
  uint32_t* number = st_map_at(&c->by_members, hash);
  if (!*number) {
    ST_RESERVE(&c->series, 1);
    uint32_t* clocks = st_memory_new(width * sizeof *clocks);
    memcpy(clocks, c->members.data, width * sizeof *clocks);
    *ST_PUSH(&c->series) = (struct st_clock_series){width, clocks, {0}};
    *number = c->series.size;
    for (uint32_t i = 0; i < width; i++)
      *ST_PUSH(&c->clocks.data[clocks[i]].series) = *number - 1;
    c->epoch++;
  }
  return &c->series.data[*number - 1];
}

static void bar(struct st_clocks* c, struct st_clock* clock) {
  clock->is_barred = true;
  c->epoch++;
}

/* Stores the snapshot that has been read.  Returns false if the trace clock
 * went backwards. */
static bool store(struct st_clocks* c) {
  struct st_clock_series* series = find_series(c);
  if (series->width != c->members.size)
    return false;
  uint32_t old = series->values.size;
  for (uint32_t i = 0; old && i < series->width; i++) {
    struct st_clock* clock = &c->clocks.data[c->members.data[i]];
    if (c->readings.data[i] >= series->values.data[old - series->width + i])
      continue;
    if (clock->id == c->trace_clock)
      return false;
    bar(c, clock);
  }
  ST_RESERVE(&series->values, series->width);
  for (uint32_t i = 0; i < series->width; i++) {
    *ST_PUSH(&series->values) = c->readings.data[i];
    c->clocks.data[c->members.data[i]].last = c->readings.data[i];
  }
  return true;
}

static const char* const kNames[] = {
    NULL,        "REALTIME",         "REALTIME_COARSE",
    "MONOTONIC", "MONOTONIC_COARSE", "MONOTONIC_RAW",
    "BOOTTIME"};

/* Sets *ts to the trace time of a reading: that of the snapshot, if the clock
 * can't be converted because it went backwards. */
static bool trace_time(struct st_clocks* c, uint32_t reading, int64_t* ts) {
  uint64_t id = c->clocks.data[c->members.data[reading]].id;
  if (st_clocks_convert(c, id, c->readings.data[reading], ts))
    return true;
  for (uint32_t i = 0; i < c->members.size; i++) {
    if (c->clocks.data[c->members.data[i]].id == c->trace_clock) {
      *ts = c->readings.data[i];
      return true;
    }
  }
  return false;
}

/* Returns a clock's id without the number of its file. */
static uint64_t shown_id(uint64_t id) {
  return id >> 32 ? id & ~(uint64_t)0xFFFFFF00 : id;
}

static void add_rows(struct st_clocks* c, struct st_storage* s) {
  for (uint32_t i = 0; i < c->members.size; i++) {
    uint64_t id = c->clocks.data[c->members.data[i]].id;
    int64_t ts;
    if (!trace_time(c, i, &ts))
      continue;
    bool named = id < sizeof kNames / sizeof *kNames && kNames[id];
    struct st_table* t = &s->tables[ST_CLOCK_TABLE];
    struct st_cell cells[ST_CLOCK_COLUMNS] = {
        [ST_CLOCK_id] = st_int(t->rows),
        [ST_CLOCK_ts] = st_int(ts),
        [ST_CLOCK_clock_id] = st_int((int64_t)shown_id(id)),
        [ST_CLOCK_clock_name] = st_text(named ? st_intern(s, kNames[id]) : 0),
        [ST_CLOCK_clock_value] = st_int(c->readings.data[i]),
        [ST_CLOCK_snapshot_id] = st_int(c->snapshots - 1),
        [ST_CLOCK_machine_id] = st_machine_cell(c->machine),
    };
    st_table_add(t, cells);
  }
}

void st_clocks_set_offset(struct st_clocks* c, uint64_t id, int64_t offset) {
  uint32_t i = 0;
  while (i < c->offsets.size && c->offsets.data[i].id != id)
    i++;
  if (i == MAX_MEMBERS)
    return;
  if (i == c->offsets.size)
    ST_PUSH(&c->offsets)->id = id;
  c->offsets.data[i].offset = offset;
  if (c->machine && id == c->trace_clock)
    c->offset = offset;
}

static void set_trace_clock(struct st_clocks* c, uint64_t id) {
  c->trace_clock = id;
  c->offset = 0;
  for (uint32_t i = 0; i < c->offsets.size; i++) {
    if (c->machine && c->offsets.data[i].id == id)
      c->offset = c->offsets.data[i].offset;
  }
}

/* Reads a snapshot and stores it. */
static bool read_snapshot(struct st_clocks* c, uint32_t sequence,
                          const uint8_t* data, size_t size) {
  struct st_decoder d;
  struct st_field f;
  bool valid = true;
  uint64_t primary = 0;
  c->snapshots++;
  c->members.size = c->readings.size = 0;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_CLOCK_SNAPSHOT_PRIMARY_TRACE_CLOCK)
      primary = f.value;
    else if (f.number == ST_FIELD_CLOCK_SNAPSHOT_CLOCKS && f.data && valid)
      valid = add_reading(c, read_clock(f.data, f.size), sequence);
  }
  if (primary && !c->is_locked)
    set_trace_clock(c, primary);
  return valid && (!c->members.size || store(c));
}

bool st_clocks_add_snapshot(struct st_clocks* c, struct st_storage* s,
                            uint32_t sequence, const uint8_t* data,
                            size_t size) {
  if (!read_snapshot(c, sequence, data, size))
    return false;
  add_rows(c, s);
  return true;
}

bool st_clocks_add_quietly(struct st_clocks* c, uint32_t sequence,
                           struct st_field snapshot) {
  return read_snapshot(c, sequence, snapshot.data, snapshot.size);
}

void st_clocks_add_pair(struct st_clocks* c, uint64_t a, int64_t a_value,
                        uint64_t b, int64_t b_value) {
  c->members.size = c->readings.size = 0;
  c->snapshots++;
  *ST_PUSH(&c->members) = clock_number(c, a);
  *ST_PUSH(&c->members) = clock_number(c, b);
  *ST_PUSH(&c->readings) = a_value;
  *ST_PUSH(&c->readings) = b_value;
  store(c);
}

int64_t st_clocks_absolute(struct st_clocks* c, uint64_t clock_id,
                           int64_t timestamp) {
  uint32_t number = st_map_get(&c->by_id, clock_id);
  if (!number)
    return timestamp;
  struct st_clock* clock = &c->clocks.data[number - 1];
  uint64_t ns = (uint64_t)timestamp * (uint64_t)clock->unit;
  if (clock->is_incremental)
    clock->last = (int64_t)(ns += (uint64_t)clock->last);
  return (int64_t)ns;
}

/* A clock that the search for a path has reached. */
struct visit {
  uint32_t clock, parent;
  struct st_hop hop;
  uint32_t hops;
};

static void set_path(struct st_clock* clock, const struct visit* visits,
                     uint32_t last) {
  clock->hops = visits[last].hops;
  for (uint32_t i = clock->hops; i > 0; i--) {
    clock->path[i - 1] = visits[last].hop;
    last = visits[last].parent;
  }
}

/* Adds those clocks of a series that have not been visited yet. */
static uint32_t visit_series(const struct st_clocks* c, struct st_map* seen,
                             struct visit* visits, uint32_t count,
                             uint32_t parent, uint32_t number) {
  const struct st_clock_series* series = &c->series.data[number];
  uint32_t from = 0;
  while (series->clocks[from] != visits[parent].clock)
    from++;
  for (uint32_t i = 0; i < series->width && count < MAX_VISITS; i++) {
    uint32_t* mark = st_map_at(seen, series->clocks[i]);
    if (*mark)
      continue;
    *mark = 1;
    visits[count++] = (struct visit){
        series->clocks[i], parent, {number, from, i}, visits[parent].hops + 1};
  }
  return count;
}

/* Searches for the shortest path, breadth first.  The work is bounded. */
static void find_path(struct st_clocks* c, uint32_t source) {
  struct visit visits[MAX_VISITS];
  struct st_map seen = {0};
  uint32_t count = 1, steps = 0;
  struct st_clock* clock = &c->clocks.data[source];
  clock->hops = 0;
  clock->path_epoch = c->epoch;
  visits[0] = (struct visit){.clock = source};
  *st_map_at(&seen, source) = 1;
  for (uint32_t i = 0; i < count; i++) {
    const struct st_clock* at = &c->clocks.data[visits[i].clock];
    if (at->id == c->trace_clock) {
      set_path(clock, visits, i);
      break;
    }
    if (visits[i].hops == MAX_HOPS || at->is_barred)
      continue;
    for (uint32_t n = 0; n < at->series.size && steps++ < MAX_VISITS; n++)
      count = visit_series(c, &seen, visits, count, i, at->series.data[n]);
  }
  st_map_free(&seen);
}

static int64_t hop(const struct st_clock_series* s, struct st_hop hop,
                   int64_t ts) {
  uint32_t low = 0, high = s->values.size / s->width;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (s->values.data[(size_t)middle * s->width + hop.from] <= ts)
      low = middle;
    else
      high = middle;
  }
  const int64_t* row = &s->values.data[(size_t)low * s->width];
  return (int64_t)((uint64_t)ts + (uint64_t)row[hop.to] -
                   (uint64_t)row[hop.from]);
}

/* Converts to the trace clock of this machine. */
static bool convert(struct st_clocks* c, uint64_t clock_id, int64_t timestamp,
                    int64_t* out) {
  *out = timestamp;
  c->is_locked = true;
  if (clock_id == c->trace_clock)
    return true;
  uint32_t number = st_map_get(&c->by_id, clock_id);
  if (!number || !c->clocks.data[number - 1].series.size)
    return false;
  struct st_clock* clock = &c->clocks.data[number - 1];
  if (clock->path_epoch != c->epoch)
    find_path(c, number - 1);
  if (!clock->hops)
    return false;
  for (uint32_t i = 0; i < clock->hops; i++)
    *out = hop(&c->series.data[clock->path[i].series], clock->path[i], *out);
  return true;
}

bool st_clocks_convert(struct st_clocks* c, uint64_t clock_id,
                       int64_t timestamp, int64_t* out) {
  bool is_known = convert(c, clock_id, timestamp, out);
  if (is_known)
    *out = (int64_t)((uint64_t)*out - (uint64_t)c->offset);
  return is_known;
}

void st_clocks_free(struct st_clocks* c) {
  for (uint32_t i = 0; i < c->clocks.size; i++)
    free(c->clocks.data[i].series.data);
  for (uint32_t i = 0; i < c->series.size; i++) {
    free(c->series.data[i].clocks);
    free(c->series.data[i].values.data);
  }
  free(c->clocks.data);
  free(c->series.data);
  free(c->members.data);
  free(c->readings.data);
  free(c->offsets.data);
  st_map_free(&c->by_id);
  st_map_free(&c->by_members);
}
