/* Slice totals: number and times of the slices by function, category, track or
 * task.
 *
 * The total time of a group counts a slice only if no slice around it belongs
 * to the group, so that recursion counts once.  The self time of a slice is its
 * duration without the slices directly inside.  Unfinished slices last until
 * the end of the trace; their CPU time until the last one that the trace has of
 * their thread.  A function has the source file of its first slice that has one.
 *
 * By task, only slices on lanes of their own are told apart, by category and
 * name.  Those on the own track of a thread, such as the steps of a task, whose
 * names are the same, are one group without category and name.
 * Percentiles: percentiles.h.
 */
#pragma once

#include "storage.h"

enum st_grouping { ST_BY_FUNCTION, ST_BY_CATEGORY, ST_BY_TRACK, ST_BY_TASK };

struct st_slice_total {
  st_string category, name; /* 0 if the grouping doesn't have them. */
  st_string file;           /* The source file of a function; 0 if unknown. */
  uint32_t track, count;
  int64_t total, self, p50, p90, p99, max;
  int64_t cpu; /* CPU time of the slices in `total`, where it is known. */
};

struct st_slice_totals {
  ST_ARRAY(struct st_slice_total) groups;
  int64_t first_ts, end_ts; /* The bounds of slices and counters. */
};

/* Fills the totals, which are all zero.  Returns false when out of memory. */
bool st_slice_totals(struct st_slice_totals* totals, const struct st_storage* s,
                     enum st_grouping by);
void st_slice_totals_free(struct st_slice_totals* totals);
