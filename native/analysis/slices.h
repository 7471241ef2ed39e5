/* Slices: begins, ends and instants of a track become rows of `slice`.
 *
 * Each track has a stack of slices.  A slice stays on the stack after its end
 * until the track's time passes it.
 *
 *   stack   | outer, open | inner, ends at 30 |     top
 *
 * Before an event at t, entries that have ended are removed from the top.  Open
 * entries above an entry that has ended get its end (counted in misplaced_end);
 * slices that overlap an earlier one without being inside are dropped (counted
 * in dropped_overlapping).
 *
 * Limits: a slice below MAX_DEPTH others gets depth 0 and is never closed, as
 * in Perfetto; its end may close a slice around it.  Such slices are counted in
 * too_deep, because the times of both are wrong.
 */
#pragma once

#include "args.h"

struct st_open_slice {
  uint32_t row;
  int64_t ts, dur; /* dur is -1 while the slice is open. */
  st_string category, name;
  struct st_arg_list args;
};

struct st_slice_stack {
  struct st_open_slice* slices;
  uint32_t size, used, capacity; /* Entries up to `used` own their args. */
  /* Of a track whose slices don't nest: while one is open, further begins are
   * only counted. */
  bool is_flat;
  int64_t begins, last_begin;
};

/* The optional thread clocks of an event. */
struct st_thread_counts {
  bool has_time, has_instructions;
  int64_t time, instructions;
};

struct st_slices {
  struct st_storage* storage;
  struct st_arg_sets* arg_sets;
  ST_ARRAY(struct st_slice_stack) stacks; /* By track. */
  uint64_t misplaced_end, dropped_overlapping, too_deep;
};

/* Starts a slice; dur is -1 for a begin, 0 for an instant.  Returns its row;
 * ST_NO_ROW if it was dropped.  *args is where its arguments are added; NULL if
 * there is no place for them. */
uint32_t st_slice_begin(struct st_slices* s, uint32_t track, int64_t ts,
                        int64_t dur, st_string category, st_string name,
                        struct st_arg_list** args);
/* The same, on a track whose slices don't nest.  While a slice is open, a
 * further begin is only counted, in the arguments of the open slice, and
 * ST_NO_ROW is returned. */
uint32_t st_slice_begin_flat(struct st_slices* s, uint32_t track, int64_t ts,
                             st_string name, struct st_arg_list** args);
/* Stores the values of the thread's clocks at the begin of a slice.  The
 * differences of an instant are 0. */
void st_slice_set_counts(struct st_slices* s, uint32_t row,
                         struct st_thread_counts counts, bool is_instant);
/* Finds the slice that an end closes, and sets its duration.  Returns the
 * slice's row; ST_NO_ROW if there is none.  Arguments may be added to *args
 * until st_slice_closed, which has to be called for the track. */
uint32_t st_slice_end(struct st_slices* s, uint32_t track, int64_t ts,
                      st_string category, st_string name,
                      struct st_arg_list** args,
                      struct st_thread_counts counts);
void st_slice_closed(struct st_slices* s, uint32_t track, uint32_t row);
/* Returns the row of the slice at the top of the track's stack. */
uint32_t st_slice_top(const struct st_slices* s, uint32_t track);
/* Stores the arguments of the slices that are still on stacks. */
void st_slices_finish(struct st_slices* s);
void st_slices_free(struct st_slices* s);
