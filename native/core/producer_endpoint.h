/* The service's side of one producer's data path.
 *
 * Owns what the service knows of a producer's shared memory: the mapping, the
 * buffers it may write to, and which buffer each of its writers targets.  One
 * call handles one CommitDataRequest, or one scrape, without any Python.
 *
 *   CommitDataRequest -> for each move:  Complete -> BeingRead, copy the
 *                        chunk to its buffer, BeingRead -> Free
 *                     -> for each patch: write it into the buffer's copy
 *
 * Everything here is hostile: page and chunk indices, target buffers, the
 * request's bytes, and the memory, which may change while it is read.  A bad
 * entry is skipped and counted; the rest goes on.  A chunk is always freed
 * after the attempt, even if its copy was refused.
 *
 * The in-process sink is the same code without the encoding: the writing
 * thread itself moves its completed chunk.
 *
 * Buffers are named by their global id (buffer_table.h).
 *
 * Locks: a mutex of its own, under which one chunk at most is copied; the
 * table's and each buffer's are taken under it.
 *
 * Source: docs/formats/shared_memory.md, "Emulation", "Scraping", "Commit batching".
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
  uint64_t chunks_discarded; /* forbidden or unknown buffer, or not the one
                                that the writer was registered for */
  uint64_t patches_discarded;
  uint64_t malformed_requests;
};

struct st_producer_endpoint {
  uint16_t producer_id;
  struct st_shm shm; /* num_pages 0 until there is memory */
  struct st_buffer_table* buffers;

  pthread_mutex_t mutex;    /* guards all below */
  uint8_t* allowed;         /* bitmap of 65536 buffer ids */
  uint32_t* writer_buffer;  /* by writer id: buffer + 1; 0: not registered */
  uint16_t adoptive_buffer; /* of writers that aren't registered; 0: none */
  struct st_endpoint_stats stats;
};

bool st_producer_endpoint_init(struct st_producer_endpoint* e,
                               uint16_t producer_id,
                               struct st_buffer_table* buffers);
/* Does not unmap the memory. */
void st_producer_endpoint_destroy(struct st_producer_endpoint* e);
void st_producer_endpoint_set_shm(struct st_producer_endpoint* e,
                                  const struct st_shm* shm);
void st_producer_endpoint_allow_buffer(struct st_producer_endpoint* e,
                                       uint16_t buffer, bool allow);
/* Ids are cut to 16 bits.  A registered writer may write to no other buffer. */
void st_producer_endpoint_register_writer(struct st_producer_endpoint* e,
                                          uint32_t writer_id, uint32_t buffer);
void st_producer_endpoint_unregister_writer(struct st_producer_endpoint* e,
                                            uint32_t writer_id);

/* The producer has died, perhaps before it could register all its writers: from
 * now on those that aren't registered are scraped into this buffer. */
void st_producer_endpoint_adopt_writers(struct st_producer_endpoint* e,
                                        uint16_t buffer);

/* Moves one Complete chunk to its buffer and frees it. */
void st_producer_endpoint_move_chunk(struct st_producer_endpoint* e,
                                     uint32_t page, uint32_t chunk,
                                     uint32_t target_buffer);

/* Handles a whole request.  *flush_request_id is 0 if the request has none.
 * False: the bytes are no CommitDataRequest (what could be read was done). */
bool st_producer_endpoint_commit(struct st_producer_endpoint* e,
                                 const uint8_t* request, size_t size,
                                 uint64_t* flush_request_id);

/* Copies what registered writers have in flight into `buffers[count]` (global
 * ids; others are left alone).  Chunk states stay as they are. */
void st_producer_endpoint_scrape(struct st_producer_endpoint* e,
                                 const uint16_t* buffers, size_t count);

/* The arbiter's sink when service and writers share a process; self is the
 * endpoint. */
extern const struct st_commit_sink st_in_process_sink;
