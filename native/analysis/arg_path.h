/* Paths: the key of an argument, while nested values are read.
 *
 *   {a: {b: 1, c: [true, "x"]}}
 *
 *   a.b      flat_key a.b      1
 *   a.c[0]   flat_key a.c      true
 *   a.c[1]   flat_key a.c      x
 *
 * Without an index the two keys are the same; only `key` is kept then.
 *
 * Life cycle: the importer has one path, which keeps its memory.
 * st_path_begin() empties it for the arguments of an event.
 *
 * Limits: keys are cut off at ST_MAX_KEY characters.
 */
#pragma once

#include "args.h"

/* Values nested deeper are ignored. */
enum { ST_MAX_DEPTH = 64, ST_MAX_KEY = 4096 };

struct st_importer;

typedef ST_ARRAY(char) st_path_key;

struct st_arg_path {
  struct st_importer* m;
  struct st_arg_list* args;
  struct st_string_pool* strings;
  uint32_t generation, depth;
  bool has_index; /* The key has an index, and `flat` is kept. */
  st_path_key key;
  st_path_key flat;
};

/* The state of a path, to return to. */
struct st_path_mark {
  uint32_t key, flat;
  bool has_index;
};

static inline struct st_path_mark st_path_mark(const struct st_arg_path* p) {
  return (struct st_path_mark){p->key.size, p->flat.size, p->has_index};
}
static inline void st_path_return(struct st_arg_path* p,
                                  struct st_path_mark mark) {
  p->key.size = mark.key;
  p->flat.size = mark.flat;
  p->has_index = mark.has_index;
}

/* Returns the importer's path, empty, for arguments that are added to `args`;
 * `generation` is that of interned data. */
struct st_arg_path* st_path_begin(struct st_importer* m, uint32_t generation,
                                  struct st_arg_list* args);

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
