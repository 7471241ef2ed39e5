#include "event_list.h"

#include <stdlib.h>
#include <string.h>

#include "core/wire.h"

enum {
  /* Larger data is kept apart, so that places fit into 32 bits. */
  LARGE_SIZE = 1 << 16,
  /* The head, the words, and the address of large data. */
  MAX_HEAD = (1 + ST_EVENT_WORDS) * ST_MAX_VARINT + sizeof(void*),
};

/* Returns unused memory at the end of a full block. */
static void shrink(struct st_event_block* block) {
  uint8_t* bytes = realloc(block->bytes.data, block->bytes.size);
  if (!bytes)
    return;
  block->bytes.data = bytes;
  block->bytes.capacity = block->bytes.size;
}

/* Adds a block, with room for as many bytes as the last one has. */
static void add_block(struct st_event_list* l) {
  uint32_t count = l->blocks.size, room = 0;
  if (l->size >= UINT32_MAX - ST_BLOCK_EVENTS)
    st_memory_fail();
  if (count) {
    room = l->blocks.data[count - 1]->bytes.size;
    shrink(l->blocks.data[count - 1]);
  }
  ST_RESERVE(&l->blocks, 1);
  struct st_event_block* block = malloc(sizeof *block);
  if (!block)
    st_memory_fail();
  block->done = 0;
  memset(&block->bytes, 0, sizeof block->bytes);
  block->large = (struct st_byte_arena){0};
  *ST_PUSH(&l->blocks) = block;
  ST_RESERVE(&block->bytes, room);
}

static uint8_t* put(uint8_t* to, const void* data, size_t size) {
  if (size)
    memcpy(to, data, size);
  return to + size;
}

/* Writes the data, or the address of its copy if it is large. */
static uint8_t* put_data(struct st_event_block* block, uint8_t* to,
                         const struct st_event* e) {
  if (e->size < LARGE_SIZE)
    return put(to, e->data, e->size);
  const uint8_t* copy = st_bytes_copy(&block->large, e->data, e->size);
  return put(to, &copy, sizeof copy);
}

void st_event_list_add(struct st_event_list* l, const struct st_event* e,
                       size_t tail_size) {
  uint32_t row = l->size % ST_BLOCK_EVENTS;
  if (l->size / ST_BLOCK_EVENTS == l->blocks.size)
    add_block(l);
  struct st_event_block* block = l->blocks.data[l->size / ST_BLOCK_EVENTS];
  ST_RESERVE(&block->bytes,
             MAX_HEAD + (l->has_data ? e->size % LARGE_SIZE : 0) + tail_size);
  uint8_t* at = block->bytes.data + block->bytes.size;
  at = st_put_varint(at, (uint64_t)e->size << 1 | (tail_size != 0));
  for (uint32_t i = 0; i < l->words; i++)
    at = st_put_varint(at, e->words[i]);
  if (l->has_data)
    at = put_data(block, at, e);
  at = put(at, e->tail, tail_size);
  block->ts[row] = e->ts;
  block->places[row] = block->bytes.size;
  block->bytes.size = (uint32_t)(at - block->bytes.data);
  l->size++;
}

struct st_event st_event_list_get(const struct st_event_list* l, uint32_t i) {
  const struct st_event_block* block = l->blocks.data[i / ST_BLOCK_EVENTS];
  const uint8_t* at = block->bytes.data + block->places[i % ST_BLOCK_EVENTS];
  const uint8_t* end = block->bytes.data + block->bytes.size;
  struct st_event e = {.ts = block->ts[i % ST_BLOCK_EVENTS]};
  uint64_t head = 0, word = 0;
  at = st_get_varint(at, end, &head);
  e.size = (uint32_t)(head >> 1);
  for (uint32_t k = 0; k < l->words; k++) {
    at = st_get_varint(at, end, &word);
    e.words[k] = (uint32_t)word;
  }
  bool is_large = l->has_data && e.size >= LARGE_SIZE;
  if (is_large)
    memcpy(&e.data, at, sizeof e.data);
  else if (l->has_data)
    e.data = at;
  at += is_large ? sizeof e.data : l->has_data ? e.size : 0;
  e.tail = head & 1 ? at : NULL;
  return e;
}

static void free_block(struct st_event_list* l, uint32_t number) {
  struct st_event_block* block = l->blocks.data[number];
  l->blocks.data[number] = NULL;
  if (!block)
    return;
  st_bytes_free(&block->large);
  free(block->bytes.data);
  free(block);
}

bool st_event_list_done(struct st_event_list* l, uint32_t i) {
  uint32_t number = i / ST_BLOCK_EVENTS;
  if (++l->blocks.data[number]->done < ST_BLOCK_EVENTS)
    return false;
  free_block(l, number);
  return true;
}

void st_event_list_free(struct st_event_list* l) {
  for (uint32_t i = 0; i < l->blocks.size; i++)
    free_block(l, i);
  free(l->blocks.data);
  *l = (struct st_event_list){0};
}
