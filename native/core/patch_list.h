/* Patches: message lengths that become known after their chunk was returned.
 *
 * When a nested message continues in another chunk, its four-byte size field
 * remains in a chunk that the writer no longer owns.  So the writer redirects
 * the size field to a patch, a slot in this FIFO. At its end the message writes
 * its size to the slot, and the patch is sent to the service with the next
 * chunk.
 *
 *   slot empty   00 00 00 00
 *   slot ready   xx 80 80 00     redundant varint: byte 0 is never 0
 *
 * The writer's open messages point into slots, so slots never move while the
 * list grows.  Patches are removed in order, from the front only.  A list
 * belongs to one writer, and so to one thread: it needs no lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ST_PATCH_SIZE = 4 };

struct st_patch {
  struct st_patch* next;
  uint32_t chunk_id;
  /* The position of the message's size field in the payload of the chunk. */
  uint16_t offset;
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

/* Appends an empty patch to the list.  Returns NULL when out of memory; the
 * caller then drops the packet. */
struct st_patch* st_patch_list_add(struct st_patch_list* list,
                                   uint32_t chunk_id, uint16_t offset);

/* Removes the patch at the front of the list, and frees it. */
void st_patch_list_pop(struct st_patch_list* list);

/* Frees all patches of the list, whether ready or not. */
void st_patch_list_clear(struct st_patch_list* list);
