/* One CommitDataRequest from pending commits (commit_pending.h), as full as
 * possible.
 *
 *   build  encodes what fits: moves, then patches, then the acknowledgement
 *   sent   removes it from the pending commits
 *   kept   leaves it there, because the send queue is full
 *
 * Called with the batch's mutex; between `build` and one of the others nothing
 * is appended.
 */
#pragma once

#include "commit_pending.h"

enum {
  /* Largest request, on the stack of the sending thread. */
  ST_COMMIT_MAX_REQUEST = 8192,
  /* Of a request with chunks in it. */
  ST_COMMIT_MAX_EMULATED_REQUEST = 128 * 1024 - 512,
  /* More ready patches than this for one chunk become several entries, so
   * that each fits into a request. */
  ST_COMMIT_MAX_PATCHES_PER_ENTRY = 256,
  /* Of the rest of an entry with so many. */
  ST_COMMIT_MAX_PATCH_ENTRY = 32 + ST_COMMIT_MAX_PATCHES_PER_ENTRY * 14,
};

struct st_commit_request {
  uint8_t* bytes;
  size_t size, limit;
  bool is_last; /* nothing that may leave is pending any more */
};

void st_commit_request_build(struct st_commit_pending* pending,
                             struct st_commit_request* r);
void st_commit_request_sent(struct st_commit_pending* pending,
                            const struct st_commit_request* r);
void st_commit_request_kept(struct st_commit_pending* pending);

/* Appends a chunk that is still being written: a copy of what it has. */
void st_commit_request_put_incomplete(struct st_commit_request* r,
                                      const uint8_t* data, size_t size,
                                      uint16_t buffer);
