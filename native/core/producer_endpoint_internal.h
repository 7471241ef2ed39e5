/* Producer endpoint, inside: what moving, committing and scraping share. */
#pragma once

#include "producer_endpoint.h"

static inline bool st_is_writer_id(uint64_t id) {
  return id >= 1 && id <= ST_MAX_WRITER_ID;
}

/* Adds to one of the endpoint's stats. */
void st_endpoint_count(struct st_producer_endpoint* e, uint64_t* counter,
                       uint64_t n);

/* What a chunk's header says, each field read once.  The payload, and whether
 * it is complete, is for the caller to say. */
struct st_chunk_copy st_endpoint_read_header(
    const struct st_producer_endpoint* e, struct st_chunk_header* h);

/* Of a chunk that isn't complete only the fragments before its last one are to
 * be trusted. */
void st_endpoint_trust_finished(struct st_chunk_copy* copy);

/* Copies the chunk to the buffer, or counts it as discarded.  With the mutex
 * held. */
void st_endpoint_copy_chunk(struct st_producer_endpoint* e,
                            const struct st_chunk_copy* copy,
                            uint32_t target_buffer);
