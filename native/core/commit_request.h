/* Builds a CommitDataRequest from pending commits (commit_pending.h), as full
 * as possible.
 *
 *   build  encodes what fits: moves, then patches, then the acknowledgement
 *   sent   removes the encoded entries from the pending commits
 *   kept   keeps them pending, because the send queue is full
 *
 * Called with the batch's mutex held.  No entry is appended between `build` and
 * `sent` or `kept`.
 */
#pragma once

#include "commit_pending.h"

enum {
  /* The largest size of a request without chunks.  The request is built on the
   * stack. */
  ST_COMMIT_MAX_REQUEST = 8192,
  /* The largest size of a request that contains chunks. */
  ST_COMMIT_MAX_EMULATED_REQUEST = 128 * 1024 - 512,
  /* The largest number of patches in a ChunkToPatch entry, so that an entry
   * fits into a request.  If a chunk has more ready patches, they become
   * several entries. */
  ST_COMMIT_MAX_PATCHES_PER_ENTRY = 256,
  /* The largest size of the encoded fields that follow a struct
   * st_pending_patches. */
  ST_COMMIT_MAX_PATCH_ENTRY = 32 + ST_COMMIT_MAX_PATCHES_PER_ENTRY * 14,
};

struct st_commit_request {
  uint8_t* bytes;
  size_t size, limit;
  /* Whether the request contains all pending commits that can be sent now. */
  bool is_last;
};

void st_commit_request_build(struct st_commit_pending* pending,
                             struct st_commit_request* r);
void st_commit_request_sent(struct st_commit_pending* pending,
                            const struct st_commit_request* r);
void st_commit_request_kept(struct st_commit_pending* pending);

/* Encodes a chunk that is still being written, as a copy of its finished
 * fragments. */
void st_commit_request_put_incomplete(struct st_commit_request* r,
                                      const uint8_t* data, size_t size,
                                      uint16_t buffer);
