#include "probes/symbol_table.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

bool st_symbol_table_add(struct st_symbol_table* t, uint64_t address,
                         uint64_t size, size_t name) {
  if (t->count == ST_MAX_SYMBOLS || name > UINT32_MAX)
    return false;
  if (t->count == t->capacity) {
    size_t capacity = t->capacity ? t->capacity * 2 : FIRST_CAPACITY;
    void* grown = realloc(t->symbols, capacity * sizeof *t->symbols);
    if (!grown)
      return false;
    t->symbols = grown;
    t->capacity = capacity;
  }
  uint64_t end = size && address + size > address ? address + size : 0;
  t->symbols[t->count] =
      (struct st_symbol){address, end, (uint32_t)name, (uint32_t)t->count};
  t->count++;
  return true;
}

static int compare(const void* a, const void* b) {
  const struct st_symbol *x = a, *y = b;
  if (x->address != y->address)
    return x->address < y->address ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

void st_symbol_table_sort(struct st_symbol_table* t) {
  size_t kept = 0;
  if (t->count)
    qsort(t->symbols, t->count, sizeof *t->symbols, compare);
  for (size_t i = 0; i < t->count; i++)
    if (!kept || t->symbols[kept - 1].address != t->symbols[i].address)
      t->symbols[kept++] = t->symbols[i];
  t->count = kept;
}

const char* st_symbol_table_find(const struct st_symbol_table* t,
                                 uint64_t address) {
  size_t low = 0, high = t->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (t->symbols[middle].address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low)
    return NULL;
  const struct st_symbol* s = &t->symbols[low - 1];
  if ((s->end && address >= s->end) || s->name >= t->text_size)
    return NULL;
  return t->text + s->name;
}

int st_symbol_table_addresses(const struct st_symbol_table* t, const char* name,
                              uint64_t* addresses, int room) {
  size_t length = strlen(name);
  int count = 0;
  for (size_t i = 0; i < t->count && count < room; i++) {
    const struct st_symbol* s = &t->symbols[i];
    if (s->name >= t->text_size || strncmp(t->text + s->name, name, length))
      continue;
    char next = t->text[s->name + length];
    if (next == 0 || next == '.')
      addresses[count++] = s->address;
  }
  return count;
}

size_t st_symbol_table_memory(const struct st_symbol_table* t) {
  return t->capacity * sizeof *t->symbols + t->text_size;
}

void st_symbol_table_free(struct st_symbol_table* t) {
  free(t->symbols);
  free(t->text);
  *t = (struct st_symbol_table){0};
}
