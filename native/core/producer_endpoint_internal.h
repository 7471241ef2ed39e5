/* Internal header of the producer endpoint, for its two .c files. */
#pragma once

#include "producer_endpoint.h"

static inline bool st_is_writer_id(uint64_t id) {
  return id >= 1 && id <= ST_MAX_WRITER_ID;
}

/* Adds n to one counter of the endpoint. */
void st_endpoint_count(struct st_producer_endpoint* e, uint64_t* counter,
                       uint64_t n);

/* Reads the header of a chunk, each field exactly once.  The caller sets the
 * payload and `complete` of the result. */
struct st_chunk_copy st_endpoint_read_header(
    const struct st_producer_endpoint* e, struct st_chunk_header* h);

/* Drops the last fragment of an incomplete chunk, because the writer may not
 * have finished that fragment. */
void st_endpoint_trust_finished(struct st_chunk_copy* copy);

/* Copies the chunk to its target buffer, or counts the chunk as discarded.  The
 * caller holds the mutex. */
void st_endpoint_copy_chunk(struct st_producer_endpoint* e,
                            const struct st_chunk_copy* copy,
                            uint32_t target_buffer);
