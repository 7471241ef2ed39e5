#include "flows.h"

#include <stdlib.h>

/* Returns the argument set of a flow of a JSON trace; ST_NO_ROW for other
 * flows. */
static uint32_t arguments(struct st_flows* f, uint64_t id) {
  if (id >= f->names.size)
    return ST_NO_ROW;
  struct st_arg_list args = {0};
  st_arg_add_text(&args, st_intern(f->storage, "name"), f->names.data[id].name);
  st_arg_add_text(&args, st_intern(f->storage, "cat"),
                  f->names.data[id].category);
  uint32_t set = st_arg_sets_add(f->arg_sets, f->storage, &args);
  st_arg_list_free(&args);
  return set;
}

static void insert_row(struct st_flows* f, uint64_t id, uint32_t out,
                       uint32_t in) {
  struct st_table* t = &f->storage->tables[ST_FLOW_TABLE];
  struct st_cell cells[ST_FLOW_COLUMNS] = {
      [ST_FLOW_id] = st_int(t->rows),
      [ST_FLOW_slice_out] = st_int(out),
      [ST_FLOW_slice_in] = st_int(in),
      [ST_FLOW_trace_id] = st_int((int64_t)id),
      [ST_FLOW_arg_set_id] = st_row(arguments(f, id)),
  };
  st_table_add(t, cells);
}

static void add_row(struct st_flows* f, uint64_t id, uint32_t from,
                    uint32_t to) {
  const struct st_table* slices = &f->storage->tables[ST_SLICE_TABLE];
  int64_t from_ts = st_table_get(slices, from, ST_SLICE_ts).i;
  bool is_reversed = from_ts > st_table_get(slices, to, ST_SLICE_ts).i;
  insert_row(f, id, is_reversed ? to : from, is_reversed ? from : to);
}

static void add_point(struct st_flows* f, uint64_t id, uint32_t slice) {
  *ST_PUSH(&f->points) = (struct st_flow_point){id, slice};
}

void st_flow_continue(struct st_flows* f, uint64_t id, uint32_t slice) {
  add_point(f, id, slice);
  uint32_t* last = st_map_at(&f->last, st_owned_key(id, f->machine));
  if (*last)
    add_row(f, id, *last - 1, slice);
  *last = slice + 1;
}

void st_flow_end(struct st_flows* f, uint64_t id, uint32_t slice) {
  add_point(f, id, slice);
  if (!st_map_get(&f->last, st_owned_key(id, f->machine)))
    return;
  uint32_t* last = st_map_at(&f->last, st_owned_key(id, f->machine));
  add_row(f, id, *last - 1, slice);
  *last = 0;
}

uint64_t st_flow_of_event(struct st_flows* f, uint64_t id, st_string category,
                          st_string name) {
  uint64_t key = st_mix(st_mix(id) ^ ((uint64_t)category << 32 | name));
  uint32_t* number = st_map_at(&f->by_event, key);
  if (!*number) {
    *ST_PUSH(&f->names) = (struct st_flow_name){name, category};
    *number = f->names.size;
  }
  return *number - 1;
}

void st_flow_begin_on_track(struct st_flows* f, uint64_t id, uint32_t slice) {
  if (slice == ST_NO_ROW) {
    f->without_slice++;
    return;
  }
  uint32_t* last = st_map_at(&f->last, st_owned_key(id, f->machine));
  f->duplicate_ids += *last != 0;
  if (!*last)
    *last = slice + 1;
}

void st_flow_step_on_track(struct st_flows* f, uint64_t id, uint32_t slice) {
  if (slice == ST_NO_ROW)
    f->without_slice++;
  else if (!st_map_get(&f->last, st_owned_key(id, f->machine)))
    f->steps_without_start++;
  else
    st_flow_continue(f, id, slice);
}

void st_flow_end_on_track(struct st_flows* f, uint64_t id, uint32_t slice) {
  uint32_t last = st_map_get(&f->last, st_owned_key(id, f->machine));
  if (slice == ST_NO_ROW)
    f->without_slice++;
  else if (!last)
    f->ends_without_start++;
  else
    add_row(f, id, last - 1, slice);
}

void st_flow_close_on_track(struct st_flows* f, uint64_t id, uint32_t slice) {
  st_flow_end_on_track(f, id, slice);
  if (slice != ST_NO_ROW && st_map_get(&f->last, st_owned_key(id, f->machine)))
    *st_map_at(&f->last, st_owned_key(id, f->machine)) = 0;
}

void st_flow_end_at_next(struct st_flows* f, uint64_t id, uint32_t track) {
  /* The pending flows of a track form a circular list.  The map has the number
   * of the list's last entry. */
  uint32_t* last = st_map_at(&f->pending_by_track, track);
  *ST_PUSH(&f->pending) = (struct st_pending_flow){.id = id};
  uint32_t added = f->pending.size;
  struct st_pending_flow* entry = &f->pending.data[added - 1];
  entry->next = *last ? f->pending.data[*last - 1].next : added;
  if (*last)
    f->pending.data[*last - 1].next = added;
  *last = added;
}

void st_flows_slice_begins(struct st_flows* f, uint32_t track, uint32_t slice) {
  uint32_t last = st_map_get(&f->pending_by_track, track);
  if (!last)
    return;
  uint32_t at = last;
  do {
    at = f->pending.data[at - 1].next;
    uint64_t id = f->pending.data[at - 1].id;
    /* As in Perfetto, a flow without a start begins in the first row of the
     * table slice. */
    uint32_t* begun = st_map_at(&f->last, st_owned_key(id, f->machine));
    if (!*begun)
      *begun = 1;
    insert_row(f, id, *begun - 1, slice);
  } while (at != last);
  *st_map_at(&f->pending_by_track, track) = 0;
}

void st_flows_free(struct st_flows* f) {
  st_map_free(&f->last);
  st_map_free(&f->by_event);
  st_map_free(&f->pending_by_track);
  free(f->points.data);
  free(f->names.data);
  free(f->pending.data);
}
