/* Checks of an importer's tables: each reference is to a row that exists. */
#pragma once

#include "analysis/importer.h"
#include "check.h"

/* Checks a column of ids of the table `target`. */
static inline void check_references(const struct st_importer* m, uint32_t table,
                                    uint32_t column, uint32_t target) {
  const struct st_table* t = &m->storage.tables[table];
  for (uint32_t i = 0; i < t->rows; i++) {
    struct st_cell cell = st_table_get(t, i, column);
    CHECK(!cell.valid ||
          (cell.i >= 0 && cell.i < m->storage.tables[target].rows));
  }
}

/* Ends an import and frees the importer.  Checks its slices, counters, flows and
 * the scheduling of its threads. */
static inline void finish_checked(struct st_importer* m) {
  CHECK(st_importer_finish(m));
  check_references(m, ST_SLICE_TABLE, ST_SLICE_track_id, ST_TRACK_TABLE);
  check_references(m, ST_SLICE_TABLE, ST_SLICE_parent_id, ST_SLICE_TABLE);
  check_references(m, ST_SLICE_TABLE, ST_SLICE_arg_set_id, ST_ARGS_TABLE);
  check_references(m, ST_COUNTER_TABLE, ST_COUNTER_track_id, ST_TRACK_TABLE);
  check_references(m, ST_FLOW_TABLE, ST_FLOW_slice_in, ST_SLICE_TABLE);
  check_references(m, ST_FLOW_TABLE, ST_FLOW_slice_out, ST_SLICE_TABLE);
  check_references(m, ST_SCHED_TABLE, ST_SCHED_utid, ST_THREAD_TABLE);
  check_references(m, ST_STATE_TABLE, ST_STATE_utid, ST_THREAD_TABLE);
  st_importer_free(m);
}
