#include "slices.h"

#include <stdlib.h>

enum { MAX_DEPTH = 512 };
/* The duration of a slice that has not ended.  Other negative ones are those of
 * malformed JSON: such a slice ends before it begins. */
enum { UNFINISHED = -1 };

static struct st_table* table(const struct st_slices* s) {
  return &s->storage->tables[ST_SLICE_TABLE];
}

static struct st_slice_stack* stack_of(struct st_slices* s, uint32_t track) {
  while (s->stacks.size <= track)
    *ST_PUSH(&s->stacks) = (struct st_slice_stack){0};
  return &s->stacks.data[track];
}

static void store_args(struct st_slices* s, struct st_open_slice* slice) {
  uint32_t set = st_arg_sets_add(s->arg_sets, s->storage, &slice->args);
  if (set != ST_NO_ROW)
    st_table_set(table(s), slice->row, ST_SLICE_arg_set_id, st_int(set));
  st_arg_list_clear(&slice->args);
}

static void pop(struct st_slices* s, struct st_slice_stack* stack) {
  store_args(s, &stack->slices[--stack->size]);
}

static void set_dur(struct st_slices* s, struct st_open_slice* slice,
                    int64_t dur) {
  slice->dur = dur;
  st_table_set(table(s), slice->row, ST_SLICE_dur, st_int(dur));
}

/* Closes the entries above entry i at the end of entry i, then removes them and
 * entry i. */
static void cut(struct st_slices* s, struct st_slice_stack* stack, uint32_t i,
                int64_t end) {
  s->misplaced_end++;
  while (stack->size > i + 1) {
    struct st_open_slice* above = &stack->slices[stack->size - 1];
    set_dur(s, above, end - above->ts);
    pop(s, stack);
  }
  pop(s, stack);
}

/* Removes the entries that have ended before an event at ts.  Returns false if
 * the event is a slice that overlaps an entry. */
static bool close_until(struct st_slices* s, struct st_slice_stack* stack,
                        int64_t ts, int64_t dur) {
  bool is_open_above = false;
  for (uint32_t i = stack->size; i-- > 0;) {
    const struct st_open_slice* slice = &stack->slices[i];
    if (slice->dur == UNFINISHED) {
      is_open_above = true;
      continue;
    }
    int64_t end = slice->ts + slice->dur;
    if (is_open_above) {
      if (ts > end) {
        cut(s, stack, i, end);
        is_open_above = false;
      }
    } else if (end < ts || (end == ts && (slice->dur || dur))) {
      pop(s, stack);
    } else if (dur >= 0 && ts < end && end < ts + dur) {
      return false;
    }
  }
  return true;
}

static struct st_open_slice* push(struct st_slice_stack* stack) {
  if (stack->size == stack->capacity)
    stack->slices =
        st_memory_grow(stack->slices, &stack->capacity,
                       (uint64_t)stack->size + 1, sizeof *stack->slices);
  if (stack->size == stack->used)
    stack->slices[stack->used++].args = (struct st_arg_list){0};
  return &stack->slices[stack->size++];
}

uint32_t st_slice_begin(struct st_slices* s, uint32_t track, int64_t ts,
                        int64_t dur, st_string category, st_string name,
                        struct st_arg_list** args) {
  struct st_slice_stack* stack = stack_of(s, track);
  *args = NULL;
  if (!close_until(s, stack, ts, dur)) {
    s->dropped_overlapping++;
    return ST_NO_ROW;
  }
  uint32_t depth = stack->size < MAX_DEPTH ? stack->size : 0;
  struct st_cell cells[ST_SLICE_COLUMNS] = {
      [ST_SLICE_id] = st_int(table(s)->rows),
      [ST_SLICE_ts] = st_int(ts),
      [ST_SLICE_dur] = st_int(dur),
      [ST_SLICE_track_id] = st_int(track),
      [ST_SLICE_category] = st_text(category),
      [ST_SLICE_name] = st_text(name),
      [ST_SLICE_depth] = st_int(depth),
  };
  if (depth)
    cells[ST_SLICE_parent_id] = st_int(stack->slices[depth - 1].row);
  uint32_t row = st_table_add(table(s), cells);
  if (stack->size < MAX_DEPTH) {
    struct st_open_slice* slice = push(stack);
    slice->row = row;
    slice->ts = ts;
    slice->dur = dur;
    slice->category = category;
    slice->name = name;
    *args = &slice->args;
  } else {
    s->too_deep += dur != 0; /* Instants have no time. */
  }
  return row;
}

uint32_t st_slice_begin_flat(struct st_slices* s, uint32_t track, int64_t ts,
                             st_string name, struct st_arg_list** args) {
  struct st_slice_stack* stack = stack_of(s, track);
  stack->is_flat = true;
  stack->begins++;
  stack->last_begin = ts;
  *args = NULL;
  if (stack->size)
    return ST_NO_ROW;
  return st_slice_begin(s, track, ts, -1, 0, name, args);
}

static void add_begins(const struct st_slices* s,
                       const struct st_slice_stack* stack,
                       struct st_arg_list* args) {
  st_arg_add_int(args, st_intern(s->storage, "legacy_unnestable_begin_count"),
                 ST_ARG_INT, stack->begins);
  st_arg_add_int(args, st_intern(s->storage, "legacy_unnestable_last_begin_ts"),
                 ST_ARG_INT, stack->last_begin);
}

void st_slice_set_counts(struct st_slices* s, uint32_t row,
                         struct st_thread_counts counts, bool is_instant) {
  struct st_table* t = table(s);
  if (counts.has_time)
    st_table_set(t, row, ST_SLICE_thread_ts, st_int(counts.time));
  if (counts.has_time && is_instant)
    st_table_set(t, row, ST_SLICE_thread_dur, st_int(0));
  if (counts.has_instructions)
    st_table_set(t, row, ST_SLICE_thread_instruction_count,
                 st_int(counts.instructions));
  if (counts.has_instructions && is_instant)
    st_table_set(t, row, ST_SLICE_thread_instruction_delta, st_int(0));
}

static void set_difference(struct st_slices* s, uint32_t row, uint32_t first,
                           uint32_t difference, int64_t value) {
  struct st_cell begin = st_table_get(table(s), row, first);
  int64_t passed = (int64_t)((uint64_t)value - (uint64_t)begin.i);
  /* A clock that did not advance may be one that isn't read at each event. */
  bool is_unread = first == ST_SLICE_thread_ts && !passed;
  if (begin.valid && value && !is_unread)
    st_table_set(table(s), row, difference, st_int(passed));
}

static bool matches(const struct st_open_slice* slice, st_string category,
                    st_string name) {
  return slice->dur == UNFINISHED &&
         (!category || slice->category == category) &&
         (!name || !slice->name || slice->name == name);
}

uint32_t st_slice_end(struct st_slices* s, uint32_t track, int64_t ts,
                      st_string category, st_string name,
                      struct st_arg_list** args,
                      struct st_thread_counts counts) {
  struct st_slice_stack* stack = stack_of(s, track);
  *args = NULL;
  close_until(s, stack, ts, -1);
  for (uint32_t i = stack->size; i-- > 0;) {
    struct st_open_slice* slice = &stack->slices[i];
    if (!matches(slice, category, name))
      continue;
    set_dur(s, slice, ts - slice->ts);
    if (counts.has_time)
      set_difference(s, slice->row, ST_SLICE_thread_ts, ST_SLICE_thread_dur,
                     counts.time);
    if (counts.has_instructions)
      set_difference(s, slice->row, ST_SLICE_thread_instruction_count,
                     ST_SLICE_thread_instruction_delta, counts.instructions);
    *args = &slice->args;
    return slice->row;
  }
  return ST_NO_ROW;
}

void st_slice_closed(struct st_slices* s, uint32_t track, uint32_t row) {
  struct st_slice_stack* stack = stack_of(s, track);
  if (!stack->size || stack->slices[stack->size - 1].row != row)
    return;
  if (stack->is_flat)
    add_begins(s, stack, &stack->slices[stack->size - 1].args);
  pop(s, stack);
}

uint32_t st_slice_top(const struct st_slices* s, uint32_t track) {
  if (track >= s->stacks.size || !s->stacks.data[track].size)
    return ST_NO_ROW;
  const struct st_slice_stack* stack = &s->stacks.data[track];
  return stack->slices[stack->size - 1].row;
}

void st_slices_finish(struct st_slices* s) {
  for (uint32_t track = 0; track < s->stacks.size; track++) {
    while (s->stacks.data[track].size)
      pop(s, &s->stacks.data[track]);
  }
}

void st_slices_free(struct st_slices* s) {
  for (uint32_t track = 0; track < s->stacks.size; track++) {
    struct st_slice_stack* stack = &s->stacks.data[track];
    for (uint32_t i = 0; i < stack->used; i++)
      st_arg_list_free(&stack->slices[i].args);
    free(stack->slices);
  }
  free(s->stacks.data);
}
