/* Slice selection: the slices with a name, or with an argument, in the order of
 * their rows, with the place of their arguments and the id of their first flow.
 *
 *   struct st_slice_selection found = {0};
 *   st_select_slices(&found, &storage, &flows, ST_WITH_ARGUMENT, "debug.role", 10);
 *   ... found.slices ...
 *   st_slice_selection_free(&found);
 *
 * The first flow is the one that the slice's event names first, even if the
 * trace has no other slice of it, so that the table flow has no row with it.
 */
#pragma once

#include "flows.h"

enum st_selection { ST_WITH_NAME, ST_WITH_ARGUMENT };

struct st_selected_slice {
  uint32_t row;
  /* The rows of its arguments in the table args. */
  uint32_t first_argument, argument_count;
  uint64_t flow; /* 0 if it has none. */
};

struct st_slice_selection {
  ST_ARRAY(struct st_selected_slice) slices;
};

/* Adds the slices whose name, or the key of one of whose arguments, is `text`.
 * Returns false when out of memory. */
bool st_select_slices(struct st_slice_selection* found,
                      const struct st_storage* s, const struct st_flows* f,
                      enum st_selection by, const char* text, size_t size);
void st_slice_selection_free(struct st_slice_selection* found);
