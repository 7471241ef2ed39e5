/* Patches: lengths that became known after their chunk had been handed over.
 *
 * When a nested message runs on into another chunk, its four-byte size field
 * stays behind in a chunk that no longer belongs to the writer.  The writer
 * then redirects the size field to a patch: a slot in this FIFO.  Once the
 * message ends, the size lands in the slot, and the patch travels to the
 * service beside the next chunk.
 *
 *   slot empty   00 00 00 00
 *   slot ready   xx 80 80 00     redundant varint: byte 0 is never 0
 *
 * The writer's open messages keep raw pointers into slots, so that slots never
 * move while the list grows.  Patches leave in order, from the front only.
 * The list belongs to one writer, hence to one thread: no lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ST_PATCH_SIZE = 4 };

struct st_patch {
  struct st_patch* next;
  uint32_t chunk_id;
  uint16_t offset; /* from the start of the chunk's payload */
  uint8_t size_field[ST_PATCH_SIZE];
};

struct st_patch_list {
  struct st_patch* front;
  struct st_patch* back;
};

static inline bool st_patch_is_ready(const struct st_patch* patch) {
  return patch->size_field[0] != 0;
}

static inline bool st_patch_list_has_ready(const struct st_patch_list* list) {
  return list->front && st_patch_is_ready(list->front);
}

/* Appends an empty patch.  NULL when out of memory: the caller drops the
 * packet. */
struct st_patch* st_patch_list_add(struct st_patch_list* list,
                                   uint32_t chunk_id, uint16_t offset);

/* Removes and frees the front. */
void st_patch_list_pop(struct st_patch_list* list);

/* Frees everything, ready or not. */
void st_patch_list_clear(struct st_patch_list* list);
