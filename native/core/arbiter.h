/* Shared memory arbiter: hands chunks of one shared memory buffer to the
 * trace writers of one producer, and passes completed ones on.
 *
 * Problem: many threads want chunks at once, none may wait for another one's
 * Python, and a completed chunk has to reach the service from the thread that
 * filled it, at once, even if no other thread of this process ever runs.
 *
 *   writer --get_chunk--> [arbiter] --> Free chunk, now BeingWritten
 *   writer --return_chunk--> Complete --> sink.chunk_complete()
 *
 * What happens to a completed chunk is the sink's business; two exist:
 *   in process   copies it straight into the trace buffer (producer_endpoint.h)
 *   system       appends to a CommitData request and sends it without
 *                blocking (commit_batch.h)
 *
 * Locks: one leaf mutex guards the search position and the writer ids.  The
 * sink is called without it.  Another one, taken before it, guards the losses of
 * writers that have ended (loss_marks.h).  The chunk states themselves are lock-free.
 *
 * Search: pages are taken round robin, so that the search starts where the
 * oldest chunks are.  A full search touches every page's header; after one in
 * vain an attempt looks only at the next few, until one succeeds, so that a
 * program that is losing data isn't slowed down on top of that.
 *
 * Layout: a page is divided when it is first taken.  With few live writers a
 * page is one chunk (fewest hand-overs); when the live writers exceed a
 * quarter of all chunks of a layout the next finer one is used for pages
 * partitioned from then on.  A reader must know all layouts anyway.
 *
 * Writer ids are handed out round robin, 1 to 32767.  The arbiter remembers
 * the next chunk id of each writer id for as long as it lives, so a reused
 * writer id goes on counting: (writer, chunk) pairs don't repeat while old
 * chunks may still lie in a trace buffer.  That is 4 bytes for a dead writer.
 *
 * Exhaustion policies (source: docs/formats/shared_memory.md, "Getting a chunk"):
 *   drop             no chunk: give up at once
 *   stall briefly    wait 43 ms at most, and not at all while the last such
 *                    wait was in vain; a dropping writer's very first chunk
 *   stall            wait until there is one; gives up after stall #300
 *                    (about 30 s) and counts it, where the reference aborts
 *                    the process: tracing never kills the traced program
 *   stall then drop  the same, but a writer that is dropping does not wait
 * Waiting sleeps 0, 8, 72, 584, 4680, 37448, 100000 us ... and is done
 * between wait_begin and wait_end, with which the binding drops the GIL.
 *
 * Fork: st_arbiter_disable_after_fork makes every later call fail softly; the
 * memory belongs to the parent.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "patch_list.h"
#include "shm_abi.h"

/* Buffers are named by the service, with ids up to 65535.  A startup writer,
 * which writes before any service has answered, has a reservation in place of
 * one: its number << 16.  It is bound to a buffer later, or to none (0). */
enum { ST_RESERVATION_SHIFT = 16, ST_MAX_RESERVATION = 65535 };

static inline bool st_is_reservation(uint32_t target_buffer) {
  return target_buffer >> ST_RESERVATION_SHIFT != 0;
}

enum st_exhausted_policy {
  ST_STALL = 0,
  ST_DROP = 1,
  ST_STALL_THEN_DROP = 2,
  ST_STALL_BRIEFLY = 3, /* no policy of a session: see trace_writer.h */
};

/* Ready patches of one chunk (Perfetto's ChunkToPatch). */
struct st_chunk_patches {
  uint16_t writer_id;
  uint32_t chunk_id;
  uint32_t target_buffer;
  bool has_more; /* further patches for this chunk will follow */
  uint32_t count;
  const struct st_patch* first; /* count of them, linked by next */
};

/* Where completed chunks go.  Called on the writing thread, without any lock
 * of the arbiter; may be called from several threads at once. */
struct st_commit_sink {
  void (*chunk_complete)(void* self, const struct st_chunk* chunk,
                         uint32_t target_buffer);
  void (*patch)(void* self, const struct st_chunk_patches* patches);
  /* Hand over whatever is batched.  Never blocks. */
  void (*flush)(void* self);
  void (*register_writer)(void* self, uint16_t writer_id,
                          uint32_t target_buffer);
  void (*unregister_writer)(void* self, uint16_t writer_id);
  /* Whether the reader of a buffer is so far behind that more would overwrite
   * what it has not read.  NULL: never. */
  bool (*congested)(void* self, uint32_t target_buffer);
  /* A chunk that patches will follow for, still BeingWritten.  False: the sink
   * wants it complete.  NULL: always. */
  bool (*chunk_unpatched)(void* self, const struct st_chunk* chunk,
                          uint32_t target_buffer);
};

/* Marks losses in the trace for writers that have ended (loss_marks.h). */
struct st_arbiter;
struct st_loss_marker {
  /* A writer of this buffer has ended and owes the mark of a loss. */
  void (*add)(struct st_arbiter* a, uint32_t target_buffer);
  /* Frees everything; writes nothing. */
  void (*destroy)(struct st_arbiter* a);
};

/* Called around every wait of a stalling policy; each may be NULL. */
struct st_wait_hooks {
  void* (*wait_begin)(void);
  void (*wait_end)(void* token);
  void (*sleep_us)(uint32_t us); /* NULL: the thread sleeps */
};

struct st_arbiter {
  struct st_shm shm;
  const struct st_commit_sink* sink;
  void* sink_self;
  struct st_wait_hooks wait_hooks;
  _Atomic bool disabled;

  _Atomic(const struct st_loss_marker*) loss_marker; /* NULL: none */
  pthread_mutex_t loss_mutex; /* guards loss_marks; see loss_marks.h */
  struct st_loss_marks* loss_marks;

  pthread_mutex_t mutex; /* guards all below */
  uint32_t next_page;
  bool exhausted;      /* the last search found nothing */
  bool waited_in_vain; /* ... and nor did a brief stall before it */
  uint16_t last_writer_id;
  uint32_t live_writers;
  uint32_t* next_chunk_id; /* by writer id, grown on demand */
  uint8_t* writer_in_use;  /* by writer id, same length */
  uint32_t writers_capacity;
  _Atomic uint64_t stalls_exhausted;
  _Atomic uint64_t chunks_lost; /* the other end tampered with their page */
};

bool st_arbiter_init(struct st_arbiter* a, const struct st_shm* shm,
                     const struct st_commit_sink* sink, void* sink_self);
void st_arbiter_destroy(struct st_arbiter* a);

/* Around fork(), in the parent. */
void st_arbiter_lock_for_fork(struct st_arbiter* a);
void st_arbiter_unlock_after_fork(struct st_arbiter* a);

/* In the child of a fork: no chunk is handed out or returned any more. */
void st_arbiter_disable_after_fork(struct st_arbiter* a);

/* Allocates a writer id and tells the sink.  0: all 32767 are taken, or the
 * arbiter is disabled.  *chunk_id is the id for the first chunk. */
uint16_t st_arbiter_add_writer(struct st_arbiter* a, uint32_t target_buffer,
                               uint32_t* chunk_id);
/* next_chunk_id: what a later owner of the same id goes on with. */
void st_arbiter_remove_writer(struct st_arbiter* a, uint16_t writer_id,
                              uint32_t next_chunk_id);

/* For a writer that ends and has not marked its loss yet.  Without a marker the
 * loss stays unmarked. */
void st_arbiter_report_loss(struct st_arbiter* a, uint32_t target_buffer);

/* For a stalling writer: waits, as for a chunk, while its buffer's reader is
 * behind.  Afterwards the writer goes on in any case. */
void st_arbiter_wait_for_reader(struct st_arbiter* a, uint32_t target_buffer);

/* packets: initial raw u16 of the chunk header.  Returns a chunk of size 0
 * when there is none (policy). */
struct st_chunk st_arbiter_get_chunk(struct st_arbiter* a, uint16_t writer_id,
                                     uint32_t chunk_id, uint16_t packets,
                                     enum st_exhausted_policy policy);

/* BeingWritten -> Complete, then the sink; then ready patches from the front
 * of the list. */
void st_arbiter_return_chunk(struct st_arbiter* a, const struct st_chunk* chunk,
                             uint32_t target_buffer);
void st_arbiter_send_patches(struct st_arbiter* a, uint16_t writer_id,
                             uint32_t target_buffer,
                             struct st_patch_list* patches);
