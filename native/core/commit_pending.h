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
  uint32_t chunk_id; /* The id of the chunk, if `being_written` is set. */
  uint16_t writer_id;
  uint32_t target_buffer;
  /* Whether the chunk is still BeingWritten and may be patched directly. */
  bool being_written;
  /* Whether the current request contains the move (commit_request.h). */
  bool in_request;
};

/* The header of an encoded ChunkToPatch.  The encoded fields after
 * target_buffer follow it. */
struct st_pending_patches {
  uint32_t size; /* The number of encoded bytes that follow. */
  uint32_t target_buffer;
  bool in_request;
};

struct st_commit_pending {
  /* The shared memory, for direct patching and emulation; else NULL. */
  const struct st_shm* shm;
  /* Whether the memory is not shared, so that requests contain the chunks. */
  bool emulated;
  struct st_growing_bytes moves;
  struct st_growing_bytes patches;
  /* The buffer of each reservation, an int32_t at index reservation - 1; -1 if
   * it is not bound yet. */
  struct st_growing_bytes bound;
  /* The flush that has to be acknowledged; 0 if there is none. */
  uint64_t flush_request_id;
  uint64_t lost_commits;
};

void st_commit_pending_destroy(struct st_commit_pending* pending);

/* Makes room for n more bytes at the end of a list, and returns it; the list's
 * size stays as it is.  Returns NULL when out of memory or above
 * ST_COMMIT_MAX_PENDING, and counts a lost commit. */
uint8_t* st_commit_pending_reserve(struct st_commit_pending* pending,
                                   struct st_growing_bytes* list, size_t n);

/* Returns the array of pending moves, and its length in `*count`. */
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
