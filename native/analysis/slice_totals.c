#include "slice_totals.h"

#include <stdlib.h>
#include <string.h>

#include "percentiles.h"

/* The table of slices. */
struct slices {
  const struct st_table* table;
  const struct st_table* tracks;
  int64_t *ts, *dur; /* By row. */
  uint32_t* parent;  /* By row; ST_NO_ROW if there is none. */
  uint32_t rows;
};

static int64_t cell(const struct slices* s, uint32_t row, uint32_t column) {
  return st_table_get(s->table, row, column).i;
}

/* Finds the first and the last time of the trace, as in Perfetto's table
 * trace_bounds. */
static void find_bounds(struct st_slice_totals* t, const struct slices* s,
                        const struct st_table* counters) {
  int64_t first = INT64_MAX, end = INT64_MIN;
  for (uint32_t i = 0; i < s->rows; i++) {
    int64_t last = s->dur[i] > 0 ? s->ts[i] + s->dur[i] : s->ts[i];
    first = s->ts[i] < first ? s->ts[i] : first;
    end = last > end ? last : end;
  }
  for (uint32_t i = 0; i < counters->rows; i++) {
    int64_t ts = st_table_get(counters, i, ST_COUNTER_ts).i;
    first = ts < first ? ts : first;
    end = ts > end ? ts : end;
  }
  t->first_ts = first <= end ? first : 0;
  t->end_ts = first <= end ? end : 0;
}

/* Whether a slice is on the own track of a thread, which has no name. */
static bool is_on_thread(const struct slices* s, uint32_t row) {
  const struct st_table* t = s->tracks;
  uint64_t track = (uint64_t)cell(s, row, ST_SLICE_track_id);
  if (track >= t->rows)
    return false;
  return st_table_get(t, (uint32_t)track, ST_TRACK_utid).valid &&
         !st_table_get(t, (uint32_t)track, ST_TRACK_parent_id).valid &&
         !st_table_get(t, (uint32_t)track, ST_TRACK_name).valid;
}

/* Copies a column's values in the segment that begins with row `first`, as
 * integers.  Returns their number. */
static uint32_t copy_segment(const struct st_table* t, uint32_t first,
                             uint32_t column, int64_t null, int64_t* to) {
  const struct st_segment* segment = st_table_segment(t, first, column);
  uint32_t rows = st_table_segment_rows(t, first);
  st_segment_copy64(segment, rows, to);
  for (uint32_t row = 0; segment->nulls && row < rows; row++) {
    if (!st_segment_is_valid(segment, row))
      to[row] = null;
  }
  return rows;
}

/* Copies the keys of the rows in the segment that begins with row `first`. */
static uint32_t copy_keys(const struct slices* s, uint32_t first,
                          enum st_grouping by, int64_t* keys, int64_t* names) {
  if (by == ST_BY_TRACK)
    return copy_segment(s->table, first, ST_SLICE_track_id, 0, keys);
  uint32_t rows = copy_segment(s->table, first, ST_SLICE_category, 0, keys);
  if (by == ST_BY_CATEGORY)
    return rows;
  copy_segment(s->table, first, ST_SLICE_name, 0, names);
  for (uint32_t i = 0; i < rows; i++) {
    bool is_step = by == ST_BY_TASK && is_on_thread(s, first + i);
    uint64_t key = (uint64_t)keys[i] << 32 | (uint64_t)names[i];
    keys[i] = is_step ? 0 : (int64_t)key;
  }
  return rows;
}

static struct st_slice_total new_group(uint64_t key, enum st_grouping by) {
  struct st_slice_total group = {0};
  if (by == ST_BY_TRACK)
    group.track = (uint32_t)key;
  else if (by == ST_BY_CATEGORY)
    group.category = (st_string)key;
  else
    group.category = (st_string)(key >> 32), group.name = (st_string)key;
  return group;
}

struct work {
  struct slices slices;
  struct st_map by_key;
  uint32_t* group_of; /* By row. */
  int64_t* self;      /* By row. */
  bool has_cpu;       /* A slice has a CPU time. */
  int64_t* last_cpu;  /* The thread's last known CPU time, by track. */
  int64_t* durations; /* By group. */
  int64_t* segment;   /* Two columns of a segment. */
};

/* Returns the number of the key's group, which is added if it is new. */
static uint32_t group_of_key(struct st_slice_totals* t, struct work* w,
                             uint64_t key, enum st_grouping by) {
  uint32_t* group = st_map_at(&w->by_key, key);
  if (!*group) {
    *ST_PUSH(&t->groups) = new_group(key, by);
    *group = t->groups.size;
  }
  return *group - 1;
}

static void assign_groups(struct st_slice_totals* t, struct work* w,
                          enum st_grouping by) {
  int64_t *keys = w->segment, *names = keys + ST_SEGMENT_ROWS, last = 0;
  uint32_t group = ST_NO_ROW, first = 0;
  while (first < w->slices.rows) {
    uint32_t rows = copy_keys(&w->slices, first, by, keys, names);
    for (uint32_t i = 0; i < rows; i++) {
      if (group == ST_NO_ROW || keys[i] != last)
        group = group_of_key(t, w, (uint64_t)keys[i], by);
      last = keys[i];
      w->group_of[first + i] = group;
      t->groups.data[group].count++;
    }
    first += rows;
  }
}

/* The keys of arguments that are a file name.  The location is interned in the
 * packets of the sequence, or inside the event. */
struct file_keys {
  st_string interned, inside; /* 0 if the trace doesn't have them. */
};

static struct file_keys find_file_keys(const struct st_string_pool* p) {
  static const char kInterned[] = "source.file_name";
  static const char kInside[] = "source_location.file_name";
  return (struct file_keys){
      .interned = st_string_find(p, kInterned, sizeof kInterned - 1),
      .inside = st_string_find(p, kInside, sizeof kInside - 1),
  };
}

/* Returns the file name in an argument set; 0 if it has none. */
static st_string find_file(const struct st_table* t, struct file_keys keys,
                           uint32_t set) {
  for (uint32_t row = set; row < t->rows; row++) {
    if (st_table_get(t, row, ST_ARGS_arg_set_id).i != set)
      break;
    int64_t key = st_table_get(t, row, ST_ARGS_key).i;
    if (key && (key == keys.interned || key == keys.inside))
      return (st_string)st_table_get(t, row, ST_ARGS_string_value).i;
  }
  return 0;
}

/* Finds the files of functions, in one argument set of most of them. */
static void find_files(struct st_slice_totals* t, const struct work* w,
                       const struct st_storage* s) {
  struct file_keys keys = find_file_keys(&s->strings);
  if (!keys.interned && !keys.inside)
    return;
  for (uint32_t row = 0; row < w->slices.rows; row++) {
    struct st_slice_total* group = &t->groups.data[w->group_of[row]];
    if (group->file)
      continue;
    struct st_cell set =
        st_table_get(w->slices.table, row, ST_SLICE_arg_set_id);
    if (set.valid)
      group->file = find_file(&s->tables[ST_ARGS_TABLE], keys, (uint32_t)set.i);
  }
}

static int64_t duration(const struct st_slice_totals* t, const struct work* w,
                        uint32_t row) {
  int64_t dur = w->slices.dur[row];
  return dur >= 0 ? dur : t->end_ts - w->slices.ts[row];
}

static bool is_inside_group(const struct work* w, uint32_t row) {
  const uint32_t* parents = w->slices.parent;
  uint32_t group = w->group_of[row], parent = parents[row];
  while (parent != ST_NO_ROW && w->group_of[parent] != group)
    parent = parents[parent];
  return parent != ST_NO_ROW;
}

/* Adds a time to a sum.  In a damaged trace the sum may be too large; it wraps
 * then. */
static void add(int64_t* sum, int64_t time) {
  *sum = (int64_t)((uint64_t)*sum + (uint64_t)time);
}

static bool has_values(const struct st_table* t, uint32_t column) {
  bool found = false;
  for (uint32_t row = 0; row < t->rows && !found; row += ST_SEGMENT_ROWS)
    found =
        st_table_segment(t, row, column)->nulls < st_table_segment_rows(t, row);
  return found;
}

/* Finds the latest CPU time of each track's thread. */
static void find_last_cpu(struct work* w, uint32_t tracks) {
  const struct slices* s = &w->slices;
  w->has_cpu = has_values(s->table, ST_SLICE_thread_ts) ||
               has_values(s->table, ST_SLICE_thread_dur);
  if (!w->has_cpu)
    return;
  for (uint32_t row = 0; row < s->rows; row++) {
    struct st_cell ts = st_table_get(s->table, row, ST_SLICE_thread_ts);
    uint64_t track = (uint64_t)cell(s, row, ST_SLICE_track_id);
    if (!ts.valid || track >= tracks)
      continue;
    struct st_cell dur = st_table_get(s->table, row, ST_SLICE_thread_dur);
    int64_t end = ts.i;
    add(&end, dur.valid ? dur.i : 0);
    if (w->last_cpu[track] < end)
      w->last_cpu[track] = end;
  }
}

/* Returns the CPU time of a slice; 0 if it is unknown. */
static int64_t cpu_of(const struct work* w, uint32_t row, uint32_t tracks) {
  const struct slices* s = &w->slices;
  struct st_cell ts = st_table_get(s->table, row, ST_SLICE_thread_ts);
  uint64_t track = (uint64_t)cell(s, row, ST_SLICE_track_id);
  if (s->dur[row] >= 0 || !ts.valid || track >= tracks)
    return cell(s, row, ST_SLICE_thread_dur);
  return (int64_t)((uint64_t)w->last_cpu[track] - (uint64_t)ts.i);
}

static void add_times(struct st_slice_totals* t, struct work* w,
                      uint32_t tracks) {
  for (uint32_t row = 0; row < w->slices.rows; row++) {
    int64_t dur = duration(t, w, row);
    uint32_t parent = w->slices.parent[row];
    add(&w->self[row], dur);
    if (parent != ST_NO_ROW)
      add(&w->self[parent], -dur);
  }
  for (uint32_t row = 0; row < w->slices.rows; row++) {
    struct st_slice_total* group = &t->groups.data[w->group_of[row]];
    add(&group->self, w->self[row]);
    if (is_inside_group(w, row))
      continue;
    add(&group->total, duration(t, w, row));
    if (w->has_cpu)
      add(&group->cpu, cpu_of(w, row, tracks));
  }
}

static void add_percentiles(struct st_slice_totals* t, struct work* w) {
  ST_ARRAY(uint32_t) starts = {0};
  uint32_t start = 0;
  ST_RESERVE(&starts, t->groups.size);
  for (uint32_t i = 0; i < t->groups.size; i++) {
    *ST_PUSH(&starts) = start;
    start += t->groups.data[i].count;
  }
  for (uint32_t row = 0; row < w->slices.rows; row++)
    w->durations[starts.data[w->group_of[row]]++] = duration(t, w, row);
  for (uint32_t i = 0; i < t->groups.size; i++) {
    struct st_slice_total* group = &t->groups.data[i];
    struct st_percentiles found = st_percentiles(
        &w->durations[starts.data[i] - group->count], group->count);
    group->p50 = found.p50;
    group->p90 = found.p90;
    group->p99 = found.p99;
    group->max = found.max;
  }
  free(starts.data);
}

/* Copies the columns that are read most often; `parents` has room for those of
 * a segment. */
static void copy_columns(struct slices* s, int64_t* parents) {
  const struct st_table* t = s->table;
  s->ts = st_memory_new((size_t)s->rows * sizeof *s->ts);
  s->dur = st_memory_new((size_t)s->rows * sizeof *s->dur);
  s->parent = st_memory_new((size_t)s->rows * sizeof *s->parent);
  for (uint32_t row = 0; row < s->rows; row += ST_SEGMENT_ROWS) {
    copy_segment(t, row, ST_SLICE_ts, 0, s->ts + row);
    copy_segment(t, row, ST_SLICE_dur, 0, s->dur + row);
    uint32_t rows =
        copy_segment(t, row, ST_SLICE_parent_id, ST_NO_ROW, parents);
    for (uint32_t i = 0; i < rows; i++)
      s->parent[row + i] = (uint32_t)parents[i];
  }
}

static void free_work(struct work* w) {
  free(w->slices.ts);
  free(w->slices.dur);
  free(w->slices.parent);
  free(w->group_of);
  free(w->self);
  free(w->last_cpu);
  free(w->durations);
  free(w->segment);
  st_map_free(&w->by_key);
}

bool st_slice_totals(struct st_slice_totals* totals, const struct st_storage* s,
                     enum st_grouping by) {
  const struct st_table* table = &s->tables[ST_SLICE_TABLE];
  uint32_t tracks = s->tables[ST_TRACK_TABLE].rows;
  struct work w = {.slices = {.table = table,
                              .tracks = &s->tables[ST_TRACK_TABLE],
                              .rows = table->rows}};
  jmp_buf place;
  jmp_buf* previous = st_memory_catch(&place);
  volatile bool done = false;
  struct work* volatile work = &w;
  if (setjmp(place) == 0) {
    work->segment = st_memory_new(2 * ST_SEGMENT_ROWS * sizeof(int64_t));
    copy_columns(&work->slices, work->segment);
    find_bounds(totals, &work->slices, &s->tables[ST_COUNTER_TABLE]);
    work->group_of = st_memory_new((size_t)table->rows * sizeof(uint32_t));
    work->self = st_memory_new((size_t)table->rows * sizeof(int64_t));
    work->last_cpu = st_memory_new((size_t)tracks * sizeof(int64_t));
    work->durations = st_memory_new((size_t)table->rows * sizeof(int64_t));
    assign_groups(totals, work, by);
    if (by == ST_BY_FUNCTION)
      find_files(totals, work, s);
    find_last_cpu(work, tracks);
    add_times(totals, work, tracks);
    add_percentiles(totals, work);
    done = true;
  }
  st_memory_catch(previous);
  free_work(work);
  return done;
}

void st_slice_totals_free(struct st_slice_totals* totals) {
  free(totals->groups.data);
  *totals = (struct st_slice_totals){0};
}
