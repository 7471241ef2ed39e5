#include "args.h"

#include <stdlib.h>
#include <string.h>

enum { SHORT_LIST = 16 };

void st_arg_sets_init(struct st_arg_sets* a, struct st_storage* s,
                      uint32_t table) {
  static const char* const kNames[] = {"int",     "uint", "string", "real",
                                       "pointer", "bool", "json",   "null"};
  *a = (struct st_arg_sets){.table = table};
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; i++)
    a->types[i] = st_intern(s, kNames[i]);
}

static struct st_arg* find(struct st_arg_list* list, st_string key) {
  if (list->args.size >= SHORT_LIST) {
    for (uint32_t i = list->keys.size; i < list->args.size; i++)
      *st_map_at(&list->keys, list->args.data[i].key) = i + 1;
    uint32_t found = st_map_get(&list->keys, key);
    return found ? &list->args.data[found - 1] : NULL;
  }
  for (uint32_t i = 0; i < list->args.size; i++) {
    if (list->args.data[i].key == key)
      return &list->args.data[i];
  }
  return NULL;
}

void st_arg_list_add(struct st_arg_list* list, struct st_arg arg) {
  struct st_arg* old = find(list, arg.key);
  if (old)
    *old = arg;
  else
    *ST_PUSH(&list->args) = arg;
}

void st_arg_list_clear(struct st_arg_list* list) {
  list->args.size = 0;
  if (list->keys.capacity)
    st_map_free(&list->keys);
}

void st_arg_list_free(struct st_arg_list* list) {
  free(list->args.data);
  st_map_free(&list->keys);
  *list = (struct st_arg_list){0};
}

static uint64_t value_bits(const struct st_arg* arg) {
  uint64_t bits = 0;
  if (arg->type == ST_ARG_STRING || arg->type == ST_ARG_JSON)
    return arg->text;
  if (arg->type == ST_ARG_REAL)
    memcpy(&bits, &arg->f, sizeof bits);
  else if (arg->type != ST_ARG_EMPTY)
    bits = (uint64_t)arg->i;
  return bits;
}

static uint64_t hash_of(const struct st_arg_sets* a,
                        const struct st_arg_list* list) {
  uint64_t hash = (uintptr_t)a ^ list->args.size;
  for (uint32_t i = 0; i < list->args.size; i++) {
    const struct st_arg* arg = &list->args.data[i];
    uint64_t key = (uint64_t)arg->key << 8 | arg->type;
    hash = st_mix(st_mix(hash + key) ^ value_bits(arg));
  }
  return hash;
}

static void add_row(struct st_arg_sets* a, struct st_table* t, uint32_t set,
                    const struct st_arg* arg) {
  struct st_cell cells[ST_ARGS_COLUMNS] = {
      [ST_ARGS_id] = st_int(t->rows),
      [ST_ARGS_arg_set_id] = st_int(set),
      [ST_ARGS_flat_key] = st_text(arg->flat_key),
      [ST_ARGS_key] = st_text(arg->key),
      [ST_ARGS_value_type] = st_text(a->types[arg->type]),
  };
  if (arg->type == ST_ARG_STRING || arg->type == ST_ARG_JSON)
    cells[ST_ARGS_string_value] = st_text(arg->text);
  else if (arg->type == ST_ARG_REAL)
    /* Perfetto shows NaN as NULL. */
    cells[ST_ARGS_real_value] = arg->f == arg->f ? st_real(arg->f) : ST_NULL;
  else if (arg->type != ST_ARG_EMPTY)
    cells[ST_ARGS_int_value] = st_int(arg->i);
  st_table_add(t, cells);
}

/* Returns whether the set that begins at `row` has the content of the list. */
static bool is_same(const struct st_arg_sets* a, const struct st_table* t,
                    uint32_t row, const struct st_arg_list* list) {
  for (uint32_t i = 0; i < list->args.size; i++) {
    const struct st_arg* arg = &list->args.data[i];
    uint32_t column = arg->type == ST_ARG_STRING || arg->type == ST_ARG_JSON
                          ? ST_ARGS_string_value
                      : arg->type == ST_ARG_REAL ? ST_ARGS_real_value
                                                 : ST_ARGS_int_value;
    if (row + i >= t->rows ||
        st_table_get(t, row + i, ST_ARGS_arg_set_id).i != row ||
        st_table_get(t, row + i, ST_ARGS_key).i != arg->key ||
        st_table_get(t, row + i, ST_ARGS_value_type).i != a->types[arg->type] ||
        (uint64_t)st_table_get(t, row + i, column).i != value_bits(arg))
      return false;
  }
  return true;
}

uint32_t st_arg_sets_add(struct st_arg_sets* a, struct st_storage* s,
                         const struct st_arg_list* list) {
  if (!list->args.size)
    return ST_NO_ROW;
  struct st_table* t = &s->tables[a->table];
  uint32_t* first = st_map_at(&a->by_hash, hash_of(a, list));
  if (*first && is_same(a, t, *first - 1, list))
    return *first - 1;
  uint32_t set = t->rows;
  *first = set + 1;
  for (uint32_t i = 0; i < list->args.size; i++)
    add_row(a, t, set, &list->args.data[i]);
  return set;
}
