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
  /* The number of discarded chunks.  Their target buffer was unknown, was not
   * allowed for the producer, or was not the one for which the writer is
   * registered. */
  uint64_t chunks_discarded;
  uint64_t patches_discarded;
  uint64_t malformed_requests;
};

struct st_producer_endpoint {
  uint16_t producer_id;
  /* The mapping of the shared memory.  Its num_pages is 0 until memory is
   * attached. */
  struct st_shm shm;
  /* A scrape reads this number of pages.  In memory of this process the pages
   * after them were never used, and to read one would cost a page fault.  Of the
   * memory of another process it is not known: the number of all pages. */
  _Atomic uint32_t pages_used;
  struct st_buffer_table* buffers;

  pthread_mutex_t mutex; /* This mutex guards the members below it. */
  /* The set of buffers that the producer may write to: a bitmap of the 65536
   * buffer ids. */
  uint8_t* allowed;
  /* For each writer id its buffer id + 1, or 0 if the writer is not
   * registered. */
  uint32_t* writer_buffer;
  uint32_t registered_writers; /* The number of registered writers. */
  /* The buffer that receives scraped chunks of unregistered writers; 0 if there
   * is none. */
  uint16_t adoptive_buffer;
  struct st_endpoint_stats stats;
};

bool st_producer_endpoint_init(struct st_producer_endpoint* e,
                               uint16_t producer_id,
                               struct st_buffer_table* buffers);
/* Destroys the endpoint.  The shared memory stays mapped. */
void st_producer_endpoint_destroy(struct st_producer_endpoint* e);
void st_producer_endpoint_set_shm(struct st_producer_endpoint* e,
                                  const struct st_shm* shm);
/* The same for memory that only an arbiter with the sink st_in_process_sink
 * writes to. */
void st_producer_endpoint_set_own_shm(struct st_producer_endpoint* e,
                                      const struct st_shm* shm);
void st_producer_endpoint_allow_buffer(struct st_producer_endpoint* e,
                                       uint16_t buffer, bool allow);
/* Registers a writer for a buffer.  The writer may then write to no other
 * buffer.  Both ids are truncated to 16 bits. */
void st_producer_endpoint_register_writer(struct st_producer_endpoint* e,
                                          uint32_t writer_id, uint32_t buffer);
void st_producer_endpoint_unregister_writer(struct st_producer_endpoint* e,
                                            uint32_t writer_id);

/* Sets the buffer that receives scraped chunks of unregistered writers.  It is
 * used for a producer that died, perhaps before it had registered all
 * writers. */
void st_producer_endpoint_adopt_writers(struct st_producer_endpoint* e,
                                        uint16_t buffer);

/* Moves one Complete chunk to its target buffer, and makes the chunk Free. */
void st_producer_endpoint_move_chunk(struct st_producer_endpoint* e,
                                     uint32_t page, uint32_t chunk,
                                     uint32_t target_buffer);

/* Handles one CommitDataRequest.  *flush_request_id becomes 0 if the request
 * has none.  Returns false if the bytes are no valid CommitDataRequest; the
 * entries before the invalid bytes are still handled. */
bool st_producer_endpoint_commit(struct st_producer_endpoint* e,
                                 const uint8_t* request, size_t size,
                                 uint64_t* flush_request_id);

/* Copies the unfinished and the Complete chunks of registered writers whose
 * target buffer is one of `buffers[count]` (global ids).  Chunk states do not
 * change. */
void st_producer_endpoint_scrape(struct st_producer_endpoint* e,
                                 const uint16_t* buffers, size_t count);

/* The arbiter's sink when the service and the writers are in one process.  The
 * `self` of its functions is the endpoint. */
extern const struct st_commit_sink st_in_process_sink;
