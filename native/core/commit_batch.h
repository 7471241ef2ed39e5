/* Commit batch: the arbiter's sink of a producer whose service is in another
 * process.  Encodes completed chunks and patches into one growing
 * CommitDataRequest and hands it to the send queue.
 *
 *   CommitDataRequest {
 *     1 chunks_to_move  { 1 page, 2 chunk, 3 target_buffer }*
 *     2 chunks_to_patch { 1 target_buffer, 2 writer_id, 3 chunk_id,
 *                         4 patches { 1 offset, 2 data }*, 5 has_more_patches }*
 *     3 flush_request_id
 *   }
 *
 * A batch leaves when the chunks in it add up to `batch_bytes` (0: each chunk
 * at once), when a patch joins it, on flush, or when a writer registers or
 * goes.  What the queue refuses stays in the batch, in order, and leaves with
 * the next attempt: the next chunk, or the queue's word that it has room
 * again.  Chunks in the batch are already Complete in shared memory, so a
 * service that scrapes after our death finds them all.
 *
 * Order: moves, patches and the flush acknowledgement as in a request, split
 * over several where they are too many for one; then the writers that came
 * and went, in their order.
 *
 * Direct patching.  A chunk that patches will follow for stays BeingWritten
 * for as long as it is in the batch, and a patch that comes in time is written
 * into it; nobody else hears of it.  The chunk becomes Complete with the last
 * of them, or when the batch leaves.
 *
 * Emulation.  No memory is shared with the service (TCP, vsock, a relay), so a
 * move carries the chunk itself, header and all, and the chunk is free as soon
 * as its request is in the queue.  Until then it lies in our memory, whose
 * size bounds what a slow service can make us hold:
 *
 *   1 chunks_to_move  { 3 target_buffer, 4 data, 5 chunk_incomplete }*
 *
 * The service can't scrape such memory.  Before a flush is acknowledged the
 * batch therefore sends what chunks that are being written hold so far, if the
 * producer is one that may be scraped.
 *
 * Startup.  A batch without a queue keeps everything, until there is one.  What
 * targets a reservation (arbiter.h) stays, with all that follows it there,
 * until the reservation is bound; the rest leaves as ever.  A reservation that
 * is bound to no buffer has its chunks freed and its data dropped.
 *
 * One mutex; a batch is sent while it is held, so that order holds.  The
 * queue's mutex is the only one taken under it.  Encoding is commit_request.h's.
 *
 * Fork: the child's copy is empty, and its queue is broken.
 *
 * Source: docs/formats/shared_memory.md, "Patches", "Commit batching", "Emulation".
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "arbiter.h"
#include "commit_pending.h"
#include "fork_guard.h"
#include "send_queue.h"

/* Method ids of the bound ProducerPort, from the bind reply. */
struct st_producer_methods {
  uint32_t service_id;
  uint32_t commit_data;
  uint32_t register_trace_writer;
  uint32_t unregister_trace_writer;
};

/* A writer that came (its buffer) or went (0). */
struct st_writer_change {
  uint16_t writer_id;
  uint32_t target_buffer;
};

struct st_commit_batch {
  struct st_send_queue* queue;
  struct st_fork_entry fork;
  struct st_producer_methods methods;
  uint32_t batch_bytes;

  pthread_mutex_t mutex; /* guards all below, and what bind gives */
  struct st_commit_pending pending;
  uint32_t* writer_buffer; /* emulated, if it may be scraped: by writer id */
  uint8_t* request;        /* emulated: room for one */
  struct st_growing_bytes changes; /* of struct st_writer_change */
  uint64_t chunk_bytes; /* sum of the sizes of the chunks in the batch */
};

extern const struct st_commit_sink st_commit_batch_sink; /* self: the batch */

/* The batch becomes the queue's room listener.  A batch with neither queue nor
 * methods is bound later.  False: out of memory. */
bool st_commit_batch_init(struct st_commit_batch* b,
                          struct st_send_queue* queue,
                          const struct st_producer_methods* methods,
                          uint32_t batch_bytes);
void st_commit_batch_destroy(struct st_commit_batch* b);

/* Patches chunks of this memory, which outlives the batch, directly. */
void st_commit_batch_patch_directly(struct st_commit_batch* b,
                                    const struct st_shm* shm);

/* Gives a batch without a queue one.  The batch moves to the end of the fork
 * guard's list, where whoever calls it must follow. */
void st_commit_batch_bind(struct st_commit_batch* b,
                          struct st_send_queue* queue,
                          const struct st_producer_methods* methods);

/* Binds a reservation, once, to a buffer or to none (0).  False: out of
 * memory, or no such number. */
bool st_commit_batch_bind_target(struct st_commit_batch* b,
                                 uint32_t reservation, uint16_t buffer);

/* This memory isn't shared: chunks go inside requests.  `scrapable`: what they
 * hold while they are written, too.  False: out of memory. */
bool st_commit_batch_emulate(struct st_commit_batch* b,
                             const struct st_shm* shm, bool scrapable);

/* Sends everything now. */
void st_commit_batch_flush(struct st_commit_batch* b);

/* Acknowledges flush `id` behind all chunks returned so far. */
void st_commit_batch_notify_flush_complete(struct st_commit_batch* b,
                                           uint64_t id);
