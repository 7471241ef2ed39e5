#include "buffer_table.h"

#include <pthread.h>
#include <stdlib.h>

enum { BUFFER_IDS = 65536 };

struct entry {
  struct st_trace_buffer* buffer;
  uint32_t users;
  /* Whether the session removed the buffer.  Then the last release destroys the
   * buffer. */
  bool removed;
};

struct st_buffer_table {
  pthread_mutex_t mutex; /* This mutex guards all other members. */
  uint32_t end;          /* Entries from here on were never used. */
  struct entry entries[BUFFER_IDS];
};

struct st_buffer_table* st_buffer_table_create(void) {
  /* calloc maps zero pages for a table of this size, so unused entries cost no
   * memory. */
  struct st_buffer_table* t = calloc(1, sizeof *t);
  if (t)
    pthread_mutex_init(&t->mutex, NULL);
  return t;
}

void st_buffer_table_destroy(struct st_buffer_table* t) {
  if (!t)
    return;
  for (uint32_t id = 0; id < t->end; id++)
    if (t->entries[id].buffer)
      st_trace_buffer_destroy(t->entries[id].buffer);
  pthread_mutex_destroy(&t->mutex);
  free(t);
}

bool st_buffer_table_add(struct st_buffer_table* t, uint16_t id,
                         struct st_trace_buffer* buffer) {
  pthread_mutex_lock(&t->mutex);
  struct entry* entry = &t->entries[id];
  bool added = id && !entry->buffer;
  if (added)
    *entry = (struct entry){.buffer = buffer};
  if (added && t->end <= id)
    t->end = id + 1u;
  pthread_mutex_unlock(&t->mutex);
  return added;
}

/* Removes the buffer from the table if its session removed it and it has no
 * users.  Returns the buffer, or NULL. */
static struct st_trace_buffer* take_unused(struct entry* entry) {
  struct st_trace_buffer* buffer = entry->buffer;
  if (!entry->removed || entry->users)
    return NULL;
  *entry = (struct entry){0};
  return buffer;
}

void st_buffer_table_remove(struct st_buffer_table* t, uint16_t id) {
  pthread_mutex_lock(&t->mutex);
  t->entries[id].removed = t->entries[id].buffer != NULL;
  struct st_trace_buffer* unused = take_unused(&t->entries[id]);
  pthread_mutex_unlock(&t->mutex);
  st_trace_buffer_destroy(unused);
}

struct st_trace_buffer* st_buffer_table_acquire(struct st_buffer_table* t,
                                                uint16_t id) {
  pthread_mutex_lock(&t->mutex);
  struct entry* entry = &t->entries[id];
  struct st_trace_buffer* buffer = entry->removed ? NULL : entry->buffer;
  if (buffer)
    entry->users++;
  pthread_mutex_unlock(&t->mutex);
  return buffer;
}

void st_buffer_table_release(struct st_buffer_table* t, uint16_t id) {
  pthread_mutex_lock(&t->mutex);
  t->entries[id].users--;
  struct st_trace_buffer* unused = take_unused(&t->entries[id]);
  pthread_mutex_unlock(&t->mutex);
  st_trace_buffer_destroy(unused);
}
