/* Producer endpoint: the service's side of one producer's data path.
 *
 * It holds a producer's shared memory mapping, the buffers that the producer
 * may write to, and the target buffer of each of its writers.  One call handles
 * one CommitDataRequest, or one scrape, without running Python code.
 *
 *   CommitDataRequest -> for each move:  Complete -> BeingRead, copy the
 *                        chunk to its buffer, BeingRead -> Free
 *                     -> for each patch: write it into the buffer's copy
 *
 * All input is untrusted: page and chunk indices, target buffers, the request's
 * bytes, and the shared memory, which may change while it is read.  A bad entry
 * is skipped and counted; the others are handled.  A chunk is freed after the
 * attempt, even if its copy was refused.
 *
 * The in-process sink uses the same code without the encoding: the writing
 * thread moves its completed chunk itself.
 *
 * Buffers are named by their global id (buffer_table.h).
 *
 * Locks: one mutex, held for the copy of one chunk at most.  The mutexes of the
 * table and the buffers are taken under it.
 *
 * Source: docs/formats/shared_memory.md, "Emulation", "Scraping", "Commit
 * batching".
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arbiter.h"
#include "buffer_table.h"
#include "shm_abi.h"
#include "trace_buffer.h"

struct st_endpoint_stats {
  /* The number of chunks whose target buffer is unknown, not allowed, or not
   * the buffer for which their writer is registered. */
  uint64_t chunks_discarded;
  uint64_t patches_discarded;
  uint64_t malformed_requests;
};

struct st_producer_endpoint {
  uint16_t producer_id;
  /* The mapping; num_pages is 0 until memory is attached. */
  struct st_shm shm;
  struct st_buffer_table* buffers;

  pthread_mutex_t mutex; /* This mutex guards the members below. */
  /* The bitmap of the 65536 buffer ids that the producer may write to. */
  uint8_t* allowed;
  /* The buffer of each writer id, plus 1; 0 for an unregistered writer. */
  uint32_t* writer_buffer;
  /* The buffer into which unregistered writers are scraped; 0 if there is
   * none. */
  uint16_t adoptive_buffer;
  struct st_endpoint_stats stats;
};

bool st_producer_endpoint_init(struct st_producer_endpoint* e,
                               uint16_t producer_id,
                               struct st_buffer_table* buffers);
/* Destroys the endpoint, without unmapping the shared memory. */
void st_producer_endpoint_destroy(struct st_producer_endpoint* e);
void st_producer_endpoint_set_shm(struct st_producer_endpoint* e,
                                  const struct st_shm* shm);
void st_producer_endpoint_allow_buffer(struct st_producer_endpoint* e,
                                       uint16_t buffer, bool allow);
/* Registers a writer.  A registered writer may write to no other buffer.  Ids
 * are truncated to 16 bits. */
void st_producer_endpoint_register_writer(struct st_producer_endpoint* e,
                                          uint32_t writer_id, uint32_t buffer);
void st_producer_endpoint_unregister_writer(struct st_producer_endpoint* e,
                                            uint32_t writer_id);

/* Sets the buffer into which unregistered writers are scraped.  It is used for
 * a producer that died, perhaps before it could register all its writers. */
void st_producer_endpoint_adopt_writers(struct st_producer_endpoint* e,
                                        uint16_t buffer);

/* Moves one Complete chunk to its buffer, and makes it Free. */
void st_producer_endpoint_move_chunk(struct st_producer_endpoint* e,
                                     uint32_t page, uint32_t chunk,
                                     uint32_t target_buffer);

/* Handles one request.  *flush_request_id becomes 0 if the request has none.
 * Returns false if the bytes are no CommitDataRequest; entries that could be
 * parsed were handled. */
bool st_producer_endpoint_commit(struct st_producer_endpoint* e,
                                 const uint8_t* request, size_t size,
                                 uint64_t* flush_request_id);

/* Copies the unfinished and Complete chunks of registered writers whose target
 * is one of `buffers[count]` (global ids). Chunk states do not change. */
void st_producer_endpoint_scrape(struct st_producer_endpoint* e,
                                 const uint16_t* buffers, size_t count);

/* The arbiter's sink when service and writers share a process.  Its `self` is
 * the endpoint. */
extern const struct st_commit_sink st_in_process_sink;
