#include "arg_path.h"

#include <stdlib.h>
#include <string.h>

#define APPEND(a, text, n)                                 \
  do {                                                     \
    uint32_t room_ = ST_MAX_KEY - (a)->size;               \
    uint32_t count_ = (n) < room_ ? (uint32_t)(n) : room_; \
    ST_RESERVE(a, count_);                                 \
    if (count_)                                            \
      memcpy((a)->data + (a)->size, text, count_);         \
    (a)->size += count_;                                   \
  } while (0)

void st_path_append(struct st_arg_path* p, const void* name, size_t size) {
  if (p->key.size)
    APPEND(&p->key, ".", 1);
  APPEND(&p->key, name, size);
  if (p->flat.size)
    APPEND(&p->flat, ".", 1);
  APPEND(&p->flat, name, size);
}

static void clean(char* name, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++) {
    if (name[i] == '.' || name[i] == '[' || name[i] == ']')
      name[i] = '_';
  }
}

void st_path_append_clean(struct st_arg_path* p, const void* name,
                          size_t size) {
  struct st_path_mark mark = st_path_mark(p);
  st_path_append(p, name, size);
  clean(p->key.data, mark.key + (mark.key > 0), p->key.size);
  clean(p->flat.data, mark.flat + (mark.flat > 0), p->flat.size);
}

void st_path_append_index(struct st_arg_path* p, uint32_t index) {
  char digits[16];
  size_t n = 0;
  do
    digits[n++] = (char)('0' + index % 10);
  while (index /= 10);
  APPEND(&p->key, "[", 1);
  while (n) {
    n--;
    APPEND(&p->key, &digits[n], 1);
  }
  APPEND(&p->key, "]", 1);
}

static void add(struct st_arg_path* p, struct st_arg arg) {
  arg.key = st_string_add(p->strings, p->key.data, p->key.size);
  arg.flat_key = p->key.size == p->flat.size
                     ? arg.key
                     : st_string_add(p->strings, p->flat.data, p->flat.size);
  st_arg_list_add(p->args, arg);
}

void st_path_add_int(struct st_arg_path* p, enum st_arg_type type,
                     int64_t value) {
  add(p, (struct st_arg){.type = type, .i = value});
}

void st_path_add_text(struct st_arg_path* p, st_string text) {
  add(p, (struct st_arg){.type = ST_ARG_STRING, .text = text});
}

void st_path_add_real(struct st_arg_path* p, double value) {
  add(p, (struct st_arg){.type = ST_ARG_REAL, .f = value});
}

void st_path_free(struct st_arg_path* p) {
  free(p->key.data);
  free(p->flat.data);
}
