#include "commit_pending.h"

#include <stdlib.h>
#include <string.h>

void st_commit_pending_destroy(struct st_commit_pending* pending) {
  free(pending->moves.data);
  free(pending->patches.data);
  free(pending->bound.data);
}

uint8_t* st_commit_pending_reserve(struct st_commit_pending* pending,
                                   struct st_growing_bytes* list, size_t n) {
  if (list->capacity - list->size >= n)
    return list->data + list->size;
  size_t capacity = list->capacity ? list->capacity : 1024;
  while (capacity - list->size < n)
    capacity *= 2;
  uint8_t* data =
      capacity <= ST_COMMIT_MAX_PENDING ? realloc(list->data, capacity) : NULL;
  if (!data) {
    pending->lost_commits++;
    return NULL;
  }
  list->data = data;
  list->capacity = capacity;
  return list->data + list->size;
}

struct st_pending_move* st_commit_pending_moves(
    struct st_commit_pending* pending, size_t* count) {
  *count = pending->moves.size / sizeof(struct st_pending_move);
  return (struct st_pending_move*)(void*)pending->moves.data;
}

static int32_t bound_at(const struct st_commit_pending* pending,
                        uint32_t reservation) {
  int32_t buffer = -1;
  size_t at = (reservation - 1) * sizeof buffer;
  if (at < pending->bound.size)
    memcpy(&buffer, pending->bound.data + at, sizeof buffer);
  return buffer;
}

bool st_commit_pending_resolve(const struct st_commit_pending* pending,
                               uint32_t target_buffer, uint16_t* buffer) {
  int32_t bound = (int32_t)target_buffer;
  if (st_is_reservation(target_buffer))
    bound = bound_at(pending, target_buffer >> ST_RESERVATION_SHIFT);
  *buffer = (uint16_t)bound;
  return bound >= 0;
}

bool st_commit_pending_bind(struct st_commit_pending* pending,
                            uint32_t reservation, uint16_t buffer) {
  int32_t bound = buffer;
  size_t end = reservation * sizeof bound;
  if (reservation == 0 || reservation > ST_MAX_RESERVATION)
    return false;
  struct st_growing_bytes* list = &pending->bound;
  if (end > list->size) {
    size_t added = end - list->size;
    uint8_t* p = st_commit_pending_reserve(pending, list, added);
    if (!p)
      return false;
    /* The bytes ff ff ff ff are the number -1: this reservation is not bound
     * yet. */
    memset(p, 0xff, added);
    list->size = end;
  }
  if (bound_at(pending, reservation) < 0)
    memcpy(list->data + end - sizeof bound, &bound, sizeof bound);
  return true;
}
