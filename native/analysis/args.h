/* Args: lists of keys and values of slices, counters, tracks and processes.
 *
 * A list is built in a st_arg_list, and stored as rows of the table args that
 * share an arg_set_id, the number of the first row.  Equal lists are stored
 * once.  If a key is added again, the new value replaces the old one in place.
 */
#pragma once

#include "storage.h"

enum st_arg_type {
  ST_ARG_INT,
  ST_ARG_UINT,
  ST_ARG_STRING,
  ST_ARG_REAL,
  ST_ARG_POINTER,
  ST_ARG_BOOL,
  ST_ARG_JSON,
  ST_ARG_EMPTY,
};

struct st_arg {
  st_string flat_key, key;
  enum st_arg_type type;
  union {
    int64_t i;
    double f;
    st_string text;
  };
};

struct st_arg_list {
  ST_ARRAY(struct st_arg) args;
  struct st_map keys; /* Used for long lists: key to index + 1. */
};

struct st_arg_sets {
  uint32_t table;        /* ST_ARGS_TABLE, or one with its columns. */
  struct st_map by_hash; /* The first row of a set, plus 1. */
  st_string types[ST_ARG_EMPTY + 1];
};

void st_arg_sets_init(struct st_arg_sets* a, struct st_storage* s,
                      uint32_t table);
void st_arg_list_add(struct st_arg_list* list, struct st_arg arg);
void st_arg_list_clear(struct st_arg_list* list);
void st_arg_list_free(struct st_arg_list* list);

static inline void st_arg_add_int(struct st_arg_list* list, st_string key,
                                  enum st_arg_type type, int64_t value) {
  st_arg_list_add(list, (struct st_arg){key, key, type, {.i = value}});
}
static inline void st_arg_add_text(struct st_arg_list* list, st_string key,
                                   st_string text) {
  st_arg_list_add(list,
                  (struct st_arg){key, key, ST_ARG_STRING, {.text = text}});
}

/* Stores the list.  Returns the id of its set; ST_NO_ROW if it is empty. */
uint32_t st_arg_sets_add(struct st_arg_sets* a, struct st_storage* s,
                         const struct st_arg_list* list);
