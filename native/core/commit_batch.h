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
 * A batch is sent when its chunks add up to `batch_bytes` (0: each chunk at
 * once), when a patch is added, on flush, or when a writer registers or
 * unregisters.  Entries that the queue refuses stay in the batch, in order, and
 * are sent again with the next chunk, or when the queue reports that it has
 * room.  Chunks in the batch are already Complete in shared memory, so a
 * service that scrapes after this process died finds them all.
 *
 * Order: moves, patches, then the flush acknowledgement, in several requests if
 * they are too many for one; then registered and unregistered writers, in their
 * order.
 *
 * Direct patching.  A chunk that needs patches stays BeingWritten while it is
 * in the batch, and a patch that comes in time is written into the chunk
 * instead of the request.  The chunk becomes Complete with its last patch, or
 * when the batch is sent.
 *
 * Emulation.  No memory is shared with the service (TCP, vsock, a relay), so a
 * move contains the chunk itself, with its header, and the chunk is free as
 * soon as its request is in the queue.  Until then it stays in the producer's
 * buffer, whose size limits how much data a slow service can pile up here:
 *
 *   1 chunks_to_move  { 3 target_buffer, 4 data, 5 chunk_incomplete }*
 *
 * The service cannot scrape such memory.  So before a flush is acknowledged,
 * the batch sends the finished fragments of chunks that are being written, if
 * the producer may be scraped.
 *
 * Startup.  A batch without a queue keeps all entries until it gets one.
 * Entries for a reservation (arbiter.h) stay until the reservation is bound;
 * the others are sent as usual.  If a reservation is bound to no buffer, its
 * data is dropped and its chunks are freed.
 *
 * Locks: one mutex, held while a batch is sent, so that the order is kept.  The
 * queue's mutex is the only one taken under it.
 *
 * Fork: the child's copy is emptied, and its queue refuses all frames.
 *
 * Source: docs/formats/shared_memory.md, "Patches", "Commit batching",
 * "Emulation".
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

/* A registered writer with its buffer, or an unregistered writer, whose buffer
 * is 0. */
struct st_writer_change {
  uint16_t writer_id;
  uint32_t target_buffer;
};

struct st_commit_batch {
  struct st_send_queue* queue;
  struct st_fork_entry fork;
  struct st_producer_methods methods;
  uint32_t batch_bytes;

  /* This mutex guards the members below, and the members that
   * st_commit_batch_bind sets. */
  pthread_mutex_t mutex;
  struct st_commit_pending pending;
  /* The target buffer of each writer id, for scraping under emulation. */
  uint32_t* writer_buffer;
  uint8_t* request; /* Memory for one request; used under emulation only. */
  struct st_growing_bytes changes; /* An array of struct st_writer_change. */
  uint64_t chunk_bytes;            /* Total size of the chunks in the batch. */
};

/* The arbiter's sink, whose `self` is the commit batch. */
extern const struct st_commit_sink st_commit_batch_sink;

/* Initialises a batch, which becomes the queue's room listener. Without a queue
 * and methods the batch is unbound, and is bound later.  Returns false when out
 * of memory. */
bool st_commit_batch_init(struct st_commit_batch* b,
                          struct st_send_queue* queue,
                          const struct st_producer_methods* methods,
                          uint32_t batch_bytes);
void st_commit_batch_destroy(struct st_commit_batch* b);

/* From now on, chunks in `shm` are patched directly.  `shm` must outlive the
 * batch. */
void st_commit_batch_patch_directly(struct st_commit_batch* b,
                                    const struct st_shm* shm);

/* Gives the batch its queue.  Registers the batch with the fork guard again, so
 * that it is the last entry.  Afterwards objects that use the batch must be
 * registered again, too. */
void st_commit_batch_bind(struct st_commit_batch* b,
                          struct st_send_queue* queue,
                          const struct st_producer_methods* methods);

/* Binds a reservation to a buffer, or to no buffer (0). Only the first call for
 * a reservation has an effect. Returns false when out of memory, or if there is
 * no such reservation. */
bool st_commit_batch_bind_target(struct st_commit_batch* b,
                                 uint32_t reservation, uint16_t buffer);

/* Switches emulation on: the memory is not shared, so requests contain the
 * chunks.  If `scrapable`, the unfinished chunks are also sent each time before
 * a flush is acknowledged.  Returns false when out of memory. */
bool st_commit_batch_emulate(struct st_commit_batch* b,
                             const struct st_shm* shm, bool scrapable);

/* Sends all entries of the batch now. */
void st_commit_batch_flush(struct st_commit_batch* b);

/* Acknowledges the flush with this id.  All chunks that were returned before
 * are sent first. */
void st_commit_batch_notify_flush_complete(struct st_commit_batch* b,
                                           uint64_t id);
