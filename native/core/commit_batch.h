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
 * goes.  What the queue refuses stays in the batch and leaves with the next
 * attempt.  Chunks in the batch are already Complete in shared memory, so a
 * service that scrapes after our death finds them all.
 *
 * One leaf mutex; a batch is sent while it is held, so that order holds.
 */
#ifndef STRETTO_CORE_COMMIT_BATCH_H_
#define STRETTO_CORE_COMMIT_BATCH_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "arbiter.h"
#include "send_queue.h"

/* Method ids of the bound ProducerPort, from the bind reply. */
struct st_producer_methods {
  uint32_t service_id;
  uint32_t commit_data;
  uint32_t register_trace_writer;
  uint32_t unregister_trace_writer;
};

struct st_commit_batch {
  struct st_send_queue* queue;
  struct st_producer_methods methods;
  uint32_t batch_bytes;

  pthread_mutex_t mutex; /* guards all below */
  uint8_t* moves;        /* encoded chunks_to_move */
  size_t moves_size, moves_capacity;
  uint8_t* patches; /* encoded chunks_to_patch */
  size_t patches_size, patches_capacity;
  uint64_t chunk_bytes; /* sum of the sizes of the chunks in the batch */
  uint64_t flush_request_id;
  uint64_t lost_commits; /* out of memory: chunks that only a scrape finds */
};

extern const struct st_commit_sink st_commit_batch_sink; /* self: the batch */

bool st_commit_batch_init(struct st_commit_batch* b,
                          struct st_send_queue* queue,
                          const struct st_producer_methods* methods,
                          uint32_t batch_bytes);
void st_commit_batch_destroy(struct st_commit_batch* b);

/* Sends everything now. */
void st_commit_batch_flush(struct st_commit_batch* b);

/* Acknowledges flush `id` behind all chunks returned so far. */
void st_commit_batch_notify_flush_complete(struct st_commit_batch* b,
                                           uint64_t id);

#endif /* STRETTO_CORE_COMMIT_BATCH_H_ */
