#include "flows.h"

static void add_row(struct st_flows* f, uint64_t id, uint32_t from,
                    uint32_t to) {
  const struct st_table* slices = &f->storage->tables[ST_SLICE_TABLE];
  struct st_table* t = &f->storage->tables[ST_FLOW_TABLE];
  int64_t from_ts = st_table_get(slices, from, ST_SLICE_ts).i;
  bool is_reversed = from_ts > st_table_get(slices, to, ST_SLICE_ts).i;
  struct st_cell cells[ST_FLOW_COLUMNS] = {
      [ST_FLOW_id] = st_int(t->rows),
      [ST_FLOW_slice_out] = st_int(is_reversed ? to : from),
      [ST_FLOW_slice_in] = st_int(is_reversed ? from : to),
      [ST_FLOW_trace_id] = st_int((int64_t)id),
  };
  st_table_add(t, cells);
}

void st_flow_continue(struct st_flows* f, uint64_t id, uint32_t slice) {
  uint32_t* last = st_map_at(&f->last, id);
  if (*last)
    add_row(f, id, *last - 1, slice);
  *last = slice + 1;
}

void st_flow_end(struct st_flows* f, uint64_t id, uint32_t slice) {
  if (!st_map_get(&f->last, id))
    return;
  uint32_t* last = st_map_at(&f->last, id);
  add_row(f, id, *last - 1, slice);
  *last = 0;
}

void st_flows_free(struct st_flows* f) {
  st_map_free(&f->last);
}
