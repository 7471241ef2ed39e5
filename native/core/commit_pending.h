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
  /* The largest size of a list in bytes.  The chunks of any shared memory need
   * far less. */
  ST_COMMIT_MAX_PENDING = 4 << 20,
};

struct st_growing_bytes {
  uint8_t* data;
  size_t size, capacity;
};

/* A pending move: a completed chunk that the service has to move to the
 * target buffer. */
struct st_pending_move {
  struct st_chunk chunk;
  /* The chunk id.  It is set only if `being_written` is true. */
  uint32_t chunk_id;
  uint16_t writer_id;
  uint32_t target_buffer;
  /* Whether the chunk is still BeingWritten, so that it may be patched
   * directly. */
  bool being_written;
  /* Whether the current request contains this move (commit_request.h). */
  bool in_request;
};

/* The header of an encoded ChunkToPatch message.  In memory the encoded fields
 * after target_buffer follow this struct. */
struct st_pending_patches {
  uint32_t size; /* The number of encoded bytes after this struct. */
  uint32_t target_buffer;
  bool in_request;
};

struct st_commit_pending {
  /* The shared memory, for direct patching and for emulation.  NULL if neither
   * is used. */
  const struct st_shm* shm;
  /* Whether emulation is on: the service has no access to the memory, so
   * requests contain the chunks. */
  bool emulated;
  struct st_growing_bytes moves;
  struct st_growing_bytes patches;
  /* The buffers of the startup reservations: an array of int32_t, indexed by
   * reservation number - 1.  An entry is -1 while the reservation is not
   * bound. */
  struct st_growing_bytes bound;
  /* The id of the flush that has to be acknowledged; 0 if there is none. */
  uint64_t flush_request_id;
  uint64_t lost_commits;
};

void st_commit_pending_destroy(struct st_commit_pending* pending);

/* Makes room for n more bytes at the end of a list and returns that room.  The
 * list's size does not change.  Returns NULL, and counts a lost commit, when
 * out of memory or if the list would exceed ST_COMMIT_MAX_PENDING. */
uint8_t* st_commit_pending_reserve(struct st_commit_pending* pending,
                                   struct st_growing_bytes* list, size_t n);

/* Returns the array of pending moves.  Stores its length in `*count`. */
struct st_pending_move* st_commit_pending_moves(
    struct st_commit_pending* pending, size_t* count);

/* Binds a reservation to a buffer, or to no buffer (0).  Only the first call
 * for a reservation has an effect.  Returns false when out of memory, or if
 * there is no such reservation. */
bool st_commit_pending_bind(struct st_commit_pending* pending,
                            uint32_t reservation, uint16_t buffer);

/* Stores the buffer id of a target in *buffer.  Returns false if the target is
 * a reservation that is not bound yet. */
bool st_commit_pending_resolve(const struct st_commit_pending* pending,
                               uint32_t target_buffer, uint16_t* buffer);
