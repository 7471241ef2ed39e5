/* Shared memory arbiter: hands chunks of one shared memory buffer to the trace
 * writers of one producer, and passes completed chunks to a sink.
 *
 * Problem: many threads take chunks at the same time, and none may wait for
 * another thread's Python code.  A completed chunk has to be sent to the
 * service at once, by the thread that filled it, even if no other thread of
 * this process ever runs.
 *
 *   writer --get_chunk--> [arbiter] --> Free chunk, now BeingWritten
 *   writer --return_chunk--> Complete --> sink.chunk_complete()
 *
 * The sink handles completed chunks.  There are two sinks:
 *   in process   copies it straight into the trace buffer (producer_endpoint.h)
 *   system       appends to a CommitData request and sends it without
 *                blocking (commit_batch.h)
 *
 * Locks: one leaf mutex guards the search position and the writer ids.  The
 * sink is called without it.  A second mutex, taken before the first, guards
 * the losses of writers that have ended (loss_marks.h). The chunk states
 * themselves are lock-free.
 *
 * Search: pages are taken round robin, so that the search starts where the
 * oldest chunks are.  A full search reads every page's header.  After a full
 * search without success, the next searches read only a few pages, until one
 * succeeds: a program that is losing data is not slowed down by searches as
 * well.
 *
 * Layout: a page is divided when it is first taken.  With few writers a page is
 * one chunk, which needs the fewest commits.  With more writers, pages divided
 * later get smaller chunks, so that the whole buffer would have at least four
 * chunks per writer.  Readers support all layouts.
 *
 * Writer ids are handed out round robin, 1 to 32767. The arbiter keeps the next
 * chunk id of each writer id (4 bytes), also after the writer has ended.  A
 * reused writer id continues its chunk ids, so (writer, chunk) pairs do not
 * repeat while old chunks may still be in a trace buffer.
 *
 * Exhaustion policies (source: docs/formats/shared_memory.md, "Getting a
 * chunk"):
 *   drop             gives up at once if there is no chunk
 *   stall briefly    waits 43 ms at most, and not at all if the last such
 *                    wait found no chunk; used for a writer's first chunk
 *   stall            waits until there is one; gives up after stall #300
 *                    (about 30 s) and counts that. Perfetto aborts the
 *                    process here, but tracing must not end the program
 *   stall then drop  the same, but a writer in drop mode does not wait
 * A wait sleeps 0, 8, 72, 584, 4680, 37448, 100000 us ... between wait_begin
 * and wait_end, where the binding releases the GIL.
 *
 * Fork: st_arbiter_disable is called in the child, because the memory belongs
 * to the parent.  After that the arbiter does nothing.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "patch_list.h"
#include "shm_abi.h"

/* A target buffer id.  Ids that the service assigns are at most 65535.  A
 * startup writer starts before a service has answered, so it has no such id.
 * Its target is a reservation, encoded as number << 16.  Later the reservation
 * is bound to a buffer, or to no buffer (0). */
enum { ST_RESERVATION_SHIFT = 16, ST_MAX_RESERVATION = 65535 };

static inline bool st_is_reservation(uint32_t target_buffer) {
  return target_buffer >> ST_RESERVATION_SHIFT != 0;
}

enum st_exhausted_policy {
  ST_STALL = 0,
  ST_DROP = 1,
  ST_STALL_THEN_DROP = 2,
  /* The exhaustion policy for a writer's first chunk (trace_writer.h).  A
   * session's config cannot choose this policy. */
  ST_STALL_BRIEFLY = 3,
};

/* The ready patches of one chunk, as in Perfetto's ChunkToPatch message. */
struct st_chunk_patches {
  uint16_t writer_id;
  uint32_t chunk_id;
  uint32_t target_buffer;
  /* Whether more patches of the same chunk will be sent later. */
  bool has_more;
  uint32_t count;
  /* The first of `count` patches.  Their member `next` links them. */
  const struct st_patch* first;
};

/* The sink that receives completed chunks.  The writing threads call its
 * functions without holding a lock of the arbiter; several threads may call
 * them at the same time. */
struct st_commit_sink {
  void (*chunk_complete)(void* self, const struct st_chunk* chunk,
                         uint32_t target_buffer);
  void (*patch)(void* self, const struct st_chunk_patches* patches);
  /* Sends all batched commits to the service, without blocking. */
  void (*flush)(void* self);
  void (*register_writer)(void* self, uint16_t writer_id,
                          uint32_t target_buffer);
  void (*unregister_writer)(void* self, uint16_t writer_id);
  /* Returns whether more chunks for a buffer would overwrite data that the
   * buffer's reader has not read.  NULL means: never. */
  bool (*congested)(void* self, uint32_t target_buffer);
  /* Takes a chunk that is still BeingWritten because its patches will follow.
   * Returns false if the sink needs the chunk to be Complete first.  If this
   * function is NULL, the sink needs every chunk to be Complete. */
  bool (*chunk_unpatched)(void* self, const struct st_chunk* chunk,
                          uint32_t target_buffer);
  /* Tells that writers are going to use an empty page.  May be NULL.  Called
   * with the arbiter's mutex held. */
  void (*page_used)(void* self, uint32_t page);
};

/* The loss marker: functions that mark the losses of ended writers in the trace
 * (loss_marks.h). */
struct st_arbiter;
struct st_loss_marker {
  /* Writes a mark into the trace: an ended writer of this buffer has lost
   * packets. */
  void (*add)(struct st_arbiter* a, uint32_t target_buffer);
  /* Frees the memory of the loss marks, without writing marks to the trace. */
  void (*destroy)(struct st_arbiter* a);
};

/* The functions that the arbiter calls before, during and after each wait of a
 * stalling policy.  Each may be NULL. */
struct st_wait_hooks {
  void* (*wait_begin)(void);
  void (*wait_end)(void* token);
  /* Sleeps for this number of microseconds.  If NULL, nanosleep is called. */
  void (*sleep_us)(uint32_t us);
};

struct st_arbiter {
  struct st_shm shm;
  const struct st_commit_sink* sink;
  void* sink_self;
  struct st_wait_hooks wait_hooks;
  /* Whether the arbiter is disabled.  The flag is never cleared.  Writers load
   * it with relaxed order: a writer that misses the change fills at most one
   * more chunk. */
  _Atomic bool disabled;

  /* The functions of the loss marker, a constant struct.  If NULL, losses of
   * ended writers are not marked in the trace. */
  _Atomic(const struct st_loss_marker*) loss_marker;
  /* This mutex guards the state of the loss marker, `loss_marks`. */
  pthread_mutex_t loss_mutex;
  struct st_loss_marks* loss_marks;

  /* This mutex guards the members from here to the statistics. */
  pthread_mutex_t mutex;
  uint32_t next_page;
  bool exhausted; /* Whether the last search found no free chunk. */
  /* Whether the last writer with the policy "stall briefly" got no chunk. */
  bool brief_stall_failed;
  /* The number of chunks that were taken since st_arbiter_is_crowded() was
   * true. */
  uint32_t taken;
  uint16_t last_writer_id;
  uint32_t live_writers;
  /* The next chunk id of each writer, by writer id.  The array grows on
   * demand. */
  uint32_t* next_chunk_id;
  /* For each writer id, whether it is in use.  The array has the same length as
   * `next_chunk_id`. */
  uint8_t* writer_in_use;
  uint32_t writers_capacity;
  /* The atomic counters below are statistics.  They order no other memory
   * access. */
  _Atomic uint64_t stalls_exhausted;
  /* The number of chunks that were lost because the peer corrupted their
   * page. */
  _Atomic uint64_t chunks_lost;
};

bool st_arbiter_init(struct st_arbiter* a, const struct st_shm* shm,
                     const struct st_commit_sink* sink, void* sink_self);
void st_arbiter_destroy(struct st_arbiter* a);

/* Disables the arbiter: from now on it hands out no chunk and takes no chunk
 * back. */
void st_arbiter_disable(struct st_arbiter* a);

/* Allocates a writer id and registers it with the sink.  Returns 0 if all 32767
 * ids are used or the arbiter is disabled.  *chunk_id becomes the id of the
 * first chunk. */
uint16_t st_arbiter_add_writer(struct st_arbiter* a, uint32_t target_buffer,
                               uint32_t* chunk_id);
/* Frees a writer id.  A later writer that gets this id starts with the chunk id
 * next_chunk_id. */
void st_arbiter_remove_writer(struct st_arbiter* a, uint16_t writer_id,
                              uint32_t next_chunk_id);

/* Marks the loss of a writer that ends: it has lost packets, and writes no
 * further packet that could mark this loss.  If the arbiter has no loss marker
 * (loss_marks.h), the loss stays unmarked. */
void st_arbiter_report_loss(struct st_arbiter* a, uint32_t target_buffer);

/* Makes a stalling writer wait while the buffer's reader is behind.  The writer
 * sleeps as in a wait for a chunk, and for no longer than such a wait. */
void st_arbiter_wait_for_reader(struct st_arbiter* a, uint32_t target_buffer);

/* Makes a writer that ends wait for a free chunk, between its attempts to get
 * one; `waits` counts its calls.  Sleeps as with the policy "stall briefly", but
 * calls no hooks: the caller may hold locks that must not be taken without the
 * GIL.  Returns false, without a sleep, if the writer has to give up. */
bool st_arbiter_wait_at_end(struct st_arbiter* a, unsigned waits);

/* Returns whether writers that are idle have to give back their chunks, because
 * they may hold all of them soon: there are so many writers that pages are
 * divided into their smallest chunks, and an eighth of all chunks, or the last
 * free chunk, was taken since the last call that returned true. */
bool st_arbiter_is_crowded(struct st_arbiter* a);

/* Returns a chunk in state BeingWritten.  If the policy gives up, returns a
 * chunk of size 0.  `packets` is the initial u16 of that name in the chunk
 * header. */
struct st_chunk st_arbiter_get_chunk(struct st_arbiter* a, uint16_t writer_id,
                                     uint32_t chunk_id, uint16_t packets,
                                     enum st_exhausted_policy policy);

/* Makes the chunk Complete and passes the chunk to the sink.  Then sends ready
 * patches from the front of the patch list. */
void st_arbiter_return_chunk(struct st_arbiter* a, const struct st_chunk* chunk,
                             uint32_t target_buffer);
void st_arbiter_send_patches(struct st_arbiter* a, uint16_t writer_id,
                             uint32_t target_buffer,
                             struct st_patch_list* patches);
