/* Arrow: hands tables over by the Arrow C data interface.
 *
 * A table is exported as a stream of struct arrays with a child per column, an
 * array for each segment of the table.  The values are copied for each array,
 * because segments have their own widths.  Text is a dictionary array, whose
 * dictionary is the whole string pool, without a copy.  An exported array holds
 * a reference to the importer until it is released.
 *
 * Source: https://arrow.apache.org/docs/format/CDataInterface.html
 */
#pragma once

#include "importer.h"

enum { ST_ARROW_NULLABLE = 2 };

/* The names of the structs are those of the Arrow C data interface. */
struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema*);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray*);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

/* These functions return false when out of memory. */
bool st_arrow_schema(const struct st_table* t, struct ArrowSchema* out);
bool st_arrow_stream(struct st_importer* m, const struct st_table* t,
                     struct ArrowArrayStream* out);
