/* Pending commits: the chunks and patches that have not been sent to the service.
 *
 *   moves     struct st_pending_move, in the order in which chunks completed
 *   patches   struct st_pending_patches, each followed by the encoded rest of a
 *             ChunkToPatch
 *   bound     the buffers of startup reservations (arbiter.h)
 *
 * commit_batch.h appends to it; commit_request.h encodes and removes entries.
 *
 * Life cycle: all zero is empty; destroy frees the memory.  Each list is
 * bounded; commits that find no room are counted as lost, and only a scrape of
 * the shared memory finds their chunks.
 *
 * Threads: the mutex of the batch guards it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arbiter.h"
#include "shm_abi.h"

enum {
  /* Bytes of one list: far more than the chunks of any shared memory need. */
  ST_COMMIT_MAX_PENDING = 4 << 20,
};

struct st_growing_bytes {
  uint8_t* data;
  size_t size, capacity;
};

/* A chunk that is to be moved. */
struct st_pending_move {
  struct st_chunk chunk;
  uint32_t chunk_id; /* with being_written */
  uint16_t writer_id;
  uint32_t target_buffer;
  bool being_written; /* patches may go into it */
  bool in_request;    /* commit_request.h */
};

/* In front of the encoded rest of a ChunkToPatch. */
struct st_pending_patches {
  uint32_t size; /* of the rest */
  uint32_t target_buffer;
  bool in_request;
};

struct st_commit_pending {
  const struct st_shm* shm; /* NULL: neither patched directly nor emulated */
  bool emulated;            /* chunks are sent inside of requests */
  struct st_growing_bytes moves;
  struct st_growing_bytes patches;
  struct st_growing_bytes bound; /* int32_t by reservation - 1; -1: not bound */
  uint64_t flush_request_id;     /* to be acknowledged; 0: none */
  uint64_t lost_commits;
};

void st_commit_pending_destroy(struct st_commit_pending* pending);

/* Room for n more bytes behind the end of a list; its size stays.  NULL: no
 * memory, or more than ST_COMMIT_MAX_PENDING; counted as a lost commit. */
uint8_t* st_commit_pending_reserve(struct st_commit_pending* pending,
                                   struct st_growing_bytes* list, size_t n);

/* The moves, `*count` of them. */
struct st_pending_move* st_commit_pending_moves(
    struct st_commit_pending* pending, size_t* count);

/* Binds a reservation to a buffer, or to none (0), once: later calls have no
 * effect.  False: out of memory, or no such reservation. */
bool st_commit_pending_bind(struct st_commit_pending* pending,
                            uint32_t reservation, uint16_t buffer);

/* The buffer that a target stands for.  False: a reservation that is not bound
 * yet. */
bool st_commit_pending_resolve(const struct st_commit_pending* pending,
                               uint32_t target_buffer, uint16_t* buffer);
