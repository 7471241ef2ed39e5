/* Pending commits: the chunks and patches that have not been sent to the
 * service yet.
 *
 *   moves     struct st_pending_move, in the order in which chunks completed
 *   patches   struct st_pending_patches, each followed by the encoded rest of a
 *             ChunkToPatch
 *   bound     the buffers of startup reservations (arbiter.h)
 *
 * commit_batch.c appends entries; commit_request.c encodes and removes them.
 *
 * Life cycle: a zeroed struct is empty; destroy frees the memory.  Each list is
 * bounded; commits beyond the bound are counted as lost; their chunks are found
 * only by a scrape of the shared memory.
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
  /* Maximal bytes of one list: far more than the chunks of any shared memory
   * need. */
  ST_COMMIT_MAX_PENDING = 4 << 20,
};

struct st_growing_bytes {
  uint8_t* data;
  size_t size, capacity;
};

/* A completed chunk, to be moved to its buffer. */
struct st_pending_move {
  struct st_chunk chunk;
  uint32_t chunk_id; /* set if being_written */
  uint16_t writer_id;
  uint32_t target_buffer;
  bool being_written; /* still BeingWritten: may be patched directly */
  bool in_request;    /* encoded in the current request (commit_request.h) */
};

/* Header in front of the encoded rest of a ChunkToPatch. */
struct st_pending_patches {
  uint32_t size; /* size of the rest */
  uint32_t target_buffer;
  bool in_request;
};

struct st_commit_pending {
  const struct st_shm* shm; /* NULL: neither direct patching nor emulation */
  bool emulated;            /* requests contain the chunks */
  struct st_growing_bytes moves;
  struct st_growing_bytes patches;
  /* int32_t, indexed by reservation - 1; -1: not bound */
  struct st_growing_bytes bound;
  uint64_t flush_request_id; /* flush to acknowledge; 0: none */
  uint64_t lost_commits;
};

void st_commit_pending_destroy(struct st_commit_pending* pending);

/* Makes room for n more bytes at the end of a list, and returns it; the list's
 * size stays as it is.  Returns NULL when out of memory or above
 * ST_COMMIT_MAX_PENDING, and counts a lost commit. */
uint8_t* st_commit_pending_reserve(struct st_commit_pending* pending,
                                   struct st_growing_bytes* list, size_t n);

/* Returns the array of moves, with `*count` entries. */
struct st_pending_move* st_commit_pending_moves(
    struct st_commit_pending* pending, size_t* count);

/* Binds a reservation to a buffer, or to none (0); only the first call has an
 * effect.  Returns false when out of memory, or if there is no such
 * reservation. */
bool st_commit_pending_bind(struct st_commit_pending* pending,
                            uint32_t reservation, uint16_t buffer);

/* Sets *buffer to the buffer of a target.  Returns false for a reservation that
 * is not bound yet. */
bool st_commit_pending_resolve(const struct st_commit_pending* pending,
                               uint32_t target_buffer, uint16_t* buffer);
