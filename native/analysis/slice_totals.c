#include "slice_totals.h"

#include <stdlib.h>
#include <string.h>

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

static uint64_t key_of(const struct slices* s, uint32_t row,
                       enum st_grouping by) {
  uint64_t category = (uint64_t)cell(s, row, ST_SLICE_category);
  if (by == ST_BY_TRACK)
    return (uint64_t)cell(s, row, ST_SLICE_track_id);
  if (by == ST_BY_CATEGORY)
    return category;
  if (by == ST_BY_TASK && is_on_thread(s, row))
    return 0;
  return category << 32 | (uint64_t)cell(s, row, ST_SLICE_name);
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
  int64_t* last_cpu;  /* The thread's last known CPU time, by track. */
  int64_t* durations; /* By group. */
};

static void assign_groups(struct st_slice_totals* t, struct work* w,
                          enum st_grouping by) {
  for (uint32_t row = 0; row < w->slices.rows; row++) {
    uint64_t key = key_of(&w->slices, row, by);
    uint32_t* group = st_map_at(&w->by_key, key);
    if (!*group) {
      *ST_PUSH(&t->groups) = new_group(key, by);
      *group = t->groups.size;
    }
    w->group_of[row] = *group - 1;
    t->groups.data[*group - 1].count++;
  }
}

static bool is_key(const struct st_storage* s, struct st_cell cell,
                   const char* key) {
  size_t size = 0;
  const char* text =
      cell.valid ? st_string_text(&s->strings, (st_string)cell.i, &size) : NULL;
  return text && size == strlen(key) && memcmp(text, key, size) == 0;
}

/* Returns the file name in an argument set; 0 if it has none.  The location is
 * interned in the packets of the sequence, or inside the event. */
static st_string find_file(const struct st_storage* s, uint32_t set) {
  const struct st_table* t = &s->tables[ST_ARGS_TABLE];
  for (uint32_t row = set; row < t->rows; row++) {
    if (st_table_get(t, row, ST_ARGS_arg_set_id).i != set)
      break;
    struct st_cell key = st_table_get(t, row, ST_ARGS_key);
    if (is_key(s, key, "source.file_name") ||
        is_key(s, key, "source_location.file_name"))
      return (st_string)st_table_get(t, row, ST_ARGS_string_value).i;
  }
  return 0;
}

/* Finds the files of functions, in one argument set of most of them. */
static void find_files(struct st_slice_totals* t, const struct work* w,
                       const struct st_storage* s) {
  for (uint32_t row = 0; row < w->slices.rows; row++) {
    struct st_slice_total* group = &t->groups.data[w->group_of[row]];
    if (group->file)
      continue;
    struct st_cell set =
        st_table_get(w->slices.table, row, ST_SLICE_arg_set_id);
    if (set.valid)
      group->file = find_file(s, (uint32_t)set.i);
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

/* Finds the latest CPU time of each track's thread. */
static void find_last_cpu(struct work* w, uint32_t tracks) {
  const struct slices* s = &w->slices;
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
    add(&group->cpu, cpu_of(w, row, tracks));
  }
}

static int compare(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

/* Returns the value that is at `rank` after sorting.  Finds its bytes one after
 * the other, by counting those of the values that agree in the bytes before. */
static int64_t find_rank(const int64_t* values, uint32_t count, uint32_t rank,
                         int64_t min, int64_t max) {
  uint64_t prefix = 0, largest = (uint64_t)max - (uint64_t)min;
  uint32_t shift = 56;
  while (shift && !(largest >> shift))
    shift -= 8;
  for (;; shift -= 8) {
    uint32_t numbers[256] = {0}, byte = 0;
    for (uint32_t i = 0; i < count; i++) {
      uint64_t value = ((uint64_t)values[i] - (uint64_t)min) >> shift;
      numbers[value & 0xFF] += value >> 8 == prefix;
    }
    while (rank >= numbers[byte])
      rank -= numbers[byte++];
    prefix = prefix << 8 | byte;
    if (!shift)
      return (int64_t)((uint64_t)min + prefix);
  }
}

/* Returns the value after that of a rank, which is `value`. */
static int64_t next_rank(const int64_t* values, uint32_t count, uint32_t rank,
                         int64_t value) {
  int64_t next = INT64_MAX;
  uint32_t not_above = 0;
  for (uint32_t i = 0; i < count; i++) {
    not_above += values[i] <= value;
    if (values[i] > value && values[i] < next)
      next = values[i];
  }
  return not_above > rank + 1 ? value : next;
}

/* The number of values from which sorting takes longer than counting. */
enum { MANY = 2048 };

static int64_t percentile(const int64_t* values, uint32_t count,
                          uint32_t percent, int64_t min, int64_t max) {
  uint64_t place = (uint64_t)(count - 1) * percent;
  uint32_t rank = (uint32_t)(place / 100), rest = (uint32_t)(place % 100);
  bool sorted = count < MANY;
  int64_t low =
      sorted ? values[rank] : find_rank(values, count, rank, min, max);
  if (!rest)
    return low;
  int64_t high =
      sorted ? values[rank + 1] : next_rank(values, count, rank, low);
  uint64_t gap = (uint64_t)high - (uint64_t)low;
  /* Divided first, so that no duration overflows. */
  gap = gap / 100 * rest + (gap % 100 * rest + 50) / 100;
  return (int64_t)((uint64_t)low + gap);
}

static void set_percentiles(struct st_slice_total* group, int64_t* durations) {
  int64_t* found[] = {&group->p50, &group->p90, &group->p99};
  static const uint32_t kPercents[] = {50, 90, 99};
  uint32_t count = group->count;
  int64_t min = durations[0], max = durations[0];
  for (uint32_t i = 0; i < count; i++) {
    min = durations[i] < min ? durations[i] : min;
    max = durations[i] > max ? durations[i] : max;
  }
  if (count < MANY)
    qsort(durations, count, sizeof *durations, compare);
  for (uint32_t i = 0; i < 3; i++)
    *found[i] = percentile(durations, count, kPercents[i], min, max);
  group->max = max;
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
    set_percentiles(group, &w->durations[starts.data[i] - group->count]);
  }
  free(starts.data);
}

/* Copies the columns that are read most often. */
static void copy_columns(struct slices* s) {
  const struct st_table* t = s->table;
  s->ts = st_memory_new((size_t)s->rows * sizeof *s->ts);
  s->dur = st_memory_new((size_t)s->rows * sizeof *s->dur);
  s->parent = st_memory_new((size_t)s->rows * sizeof *s->parent);
  for (uint32_t row = 0; row < s->rows; row += ST_SEGMENT_ROWS) {
    uint32_t rows = st_table_segment_rows(t, row);
    st_segment_copy64(st_table_segment(t, row, ST_SLICE_ts), rows, s->ts + row);
    st_segment_copy64(st_table_segment(t, row, ST_SLICE_dur), rows,
                      s->dur + row);
  }
  for (uint32_t row = 0; row < s->rows; row++) {
    struct st_cell parent = st_table_get(t, row, ST_SLICE_parent_id);
    s->parent[row] = parent.valid ? (uint32_t)parent.i : ST_NO_ROW;
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
    copy_columns(&work->slices);
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
