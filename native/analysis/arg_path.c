#include "arg_path.h"

#include <stdlib.h>
#include <string.h>

#include "importer.h"

struct st_arg_path* st_path_begin(struct st_importer* m, uint32_t generation,
                                  struct st_arg_list* args) {
  struct st_arg_path* p = &m->path;
  p->m = m;
  p->args = args;
  p->strings = &m->storage.strings;
  p->generation = generation;
  p->depth = 0;
  st_path_return(p, (struct st_path_mark){0});
  return p;
}

static void append_text(st_path_key* key, const void* text, size_t size) {
  uint32_t room = ST_MAX_KEY - key->size;
  uint32_t count = size < room ? (uint32_t)size : room;
  ST_RESERVE(key, count);
  if (count)
    memcpy(key->data + key->size, text, count);
  key->size += count;
}

static void clean(char* name, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++) {
    if (name[i] == '.' || name[i] == '[' || name[i] == ']')
      name[i] = '_';
  }
}

static void append_name(st_path_key* key, const void* name, size_t size,
                        bool is_clean) {
  if (key->size)
    append_text(key, ".", 1);
  uint32_t start = key->size;
  append_text(key, name, size);
  if (is_clean)
    clean(key->data, start, key->size);
}

static void append(struct st_arg_path* p, const void* name, size_t size,
                   bool is_clean) {
  append_name(&p->key, name, size, is_clean);
  if (p->has_index)
    append_name(&p->flat, name, size, is_clean);
}

void st_path_append(struct st_arg_path* p, const void* name, size_t size) {
  append(p, name, size, false);
}

void st_path_append_clean(struct st_arg_path* p, const void* name,
                          size_t size) {
  append(p, name, size, true);
}

void st_path_append_index(struct st_arg_path* p, uint32_t index) {
  char digits[16];
  size_t n = 0;
  if (!p->has_index) {
    p->has_index = true;
    p->flat.size = 0;
    append_text(&p->flat, p->key.data, p->key.size);
  }
  do
    digits[n++] = (char)('0' + index % 10);
  while (index /= 10);
  append_text(&p->key, "[", 1);
  while (n) {
    n--;
    append_text(&p->key, &digits[n], 1);
  }
  append_text(&p->key, "]", 1);
}

static void add(struct st_arg_path* p, struct st_arg arg) {
  arg.key = st_string_add(p->strings, p->key.data, p->key.size);
  arg.flat_key = p->has_index
                     ? st_string_add(p->strings, p->flat.data, p->flat.size)
                     : arg.key;
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
