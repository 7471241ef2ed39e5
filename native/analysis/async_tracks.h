/* Tracks of asynchronous slices that are known by an id: those of Chromium's
 * legacy events, of JSON, and of FXT.
 *
 *   begin id 7 "load"     begin id 7 "parse"     end id 7      end id 7
 *   `------------------ one row of __intrinsic_track ----------------'
 *
 * Slices with the same id share a row.  It is named after the first of them, and
 * belongs to the group of all rows of this name and scope.
 */
#pragma once

#include "tracks.h"

struct st_async_slice {
  uint64_t id;
  bool is_local; /* The id is one of the process, not of the trace. */
  uint32_t upid; /* 0 if unknown. */
  st_string name, scope;
};

struct st_async_tracks {
  struct st_map first_names; /* Id to the first name + 1. */
};

/* Returns the row of the slice's track. */
uint32_t st_async_track_row(struct st_async_tracks* a, struct st_tracks* t,
                            const struct st_async_slice* slice,
                            enum st_use use);
