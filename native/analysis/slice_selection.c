#include "slice_selection.h"

#include <stdlib.h>

struct selecting {
  struct st_slice_selection* found;
  const struct st_storage* s;
  struct st_map sets;    /* The argument sets with the key: their row + 1. */
  struct st_map numbers; /* Rows of slices: their number in `found` + 1. */
};

/* Notes the argument sets that have a key. */
static void find_sets(struct selecting* w, st_string key) {
  const struct st_table* t = &w->s->tables[ST_ARGS_TABLE];
  for (uint32_t row = 0; row < t->rows; row++) {
    if (st_table_get(t, row, ST_ARGS_key).i == key) {
      uint32_t set = (uint32_t)st_table_get(t, row, ST_ARGS_arg_set_id).i;
      *st_map_at(&w->sets, set) = set + 1;
    }
  }
}

static void add_slice(struct selecting* w, uint32_t row, struct st_cell set) {
  const struct st_table* t = &w->s->tables[ST_ARGS_TABLE];
  uint32_t first = set.valid ? (uint32_t)set.i : t->rows, end = first;
  while (end < t->rows && st_table_get(t, end, ST_ARGS_arg_set_id).i == first)
    end++;
  *ST_PUSH(&w->found->slices) =
      (struct st_selected_slice){row, first, end - first, 0};
  *st_map_at(&w->numbers, row) = w->found->slices.size;
}

static void add_slices(struct selecting* w, enum st_selection by,
                       st_string text) {
  const struct st_table* t = &w->s->tables[ST_SLICE_TABLE];
  for (uint32_t row = 0; row < t->rows; row++) {
    struct st_cell set = st_table_get(t, row, ST_SLICE_arg_set_id);
    bool is_chosen = by == ST_WITH_NAME
                         ? st_table_get(t, row, ST_SLICE_name).i == text
                         : set.valid && st_map_get(&w->sets, (uint64_t)set.i);
    if (is_chosen)
      add_slice(w, row, set);
  }
}

/* The points are in the order of the events: the first one of a slice counts. */
static void add_flows(struct selecting* w, const struct st_flows* f) {
  for (uint32_t i = 0; i < f->points.size; i++) {
    uint32_t number = st_map_get(&w->numbers, f->points.data[i].slice);
    if (!number)
      continue;
    struct st_selected_slice* slice = &w->found->slices.data[number - 1];
    if (!slice->flow)
      slice->flow = f->points.data[i].id;
  }
}

static void fill(struct selecting* w, const struct st_flows* f,
                 enum st_selection by, st_string text) {
  if (by == ST_WITH_ARGUMENT)
    find_sets(w, text);
  add_slices(w, by, text);
  add_flows(w, f);
}

bool st_select_slices(struct st_slice_selection* found,
                      const struct st_storage* s, const struct st_flows* f,
                      enum st_selection by, const char* text, size_t size) {
  st_string id = st_string_find(&s->strings, text, size);
  struct selecting w = {.found = found, .s = s};
  struct selecting* volatile work = &w;
  jmp_buf place;
  jmp_buf* previous = st_memory_catch(&place);
  volatile bool done = false;
  if (setjmp(place) == 0) {
    if (id)
      fill(work, f, by, id);
    done = true;
  }
  st_memory_catch(previous);
  st_map_free(&work->sets);
  st_map_free(&work->numbers);
  return done;
}

void st_slice_selection_free(struct st_slice_selection* found) {
  free(found->slices.data);
  *found = (struct st_slice_selection){0};
}
