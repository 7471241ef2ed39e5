/* Paths: the key of an argument, while nested values are read.
 *
 *   {a: {b: 1, c: [true, "x"]}}
 *
 *   a.b      flat_key a.b      1
 *   a.c[0]   flat_key a.c      true
 *   a.c[1]   flat_key a.c      x
 *
 * Limits: keys are cut off at ST_MAX_KEY characters.
 */
#pragma once

#include "args.h"

/* Values nested deeper are ignored. */
enum { ST_MAX_DEPTH = 64, ST_MAX_KEY = 4096 };

struct st_importer;

struct st_arg_path {
  struct st_importer* m;
  struct st_arg_list* args;
  struct st_string_pool* strings;
  uint32_t generation, depth;
  ST_ARRAY(char) key;
  ST_ARRAY(char) flat;
};

/* The sizes of a path, to return to. */
struct st_path_mark {
  uint32_t key, flat;
};

static inline struct st_path_mark st_path_mark(const struct st_arg_path* p) {
  return (struct st_path_mark){p->key.size, p->flat.size};
}
static inline void st_path_return(struct st_arg_path* p,
                                  struct st_path_mark mark) {
  p->key.size = mark.key;
  p->flat.size = mark.flat;
}

/* Appends a name to both keys. */
void st_path_append(struct st_arg_path* p, const void* name, size_t size);
/* The same; `.`, `[` and `]` in the name become `_`. */
void st_path_append_clean(struct st_arg_path* p, const void* name, size_t size);
/* Appends an index to the key. */
void st_path_append_index(struct st_arg_path* p, uint32_t index);

/* These functions add an argument with the path's keys. */
void st_path_add_int(struct st_arg_path* p, enum st_arg_type type,
                     int64_t value);
void st_path_add_text(struct st_arg_path* p, st_string text);
void st_path_add_real(struct st_arg_path* p, double value);
void st_path_free(struct st_arg_path* p);
