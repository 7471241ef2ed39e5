#include "commit_batch.h"

#include <stdlib.h>
#include <string.h>

#include "chunk_fragments.h"
#include "commit_request.h"
#include "wire.h"

enum {
  PATCH_WRITER = 2,
  PATCH_CHUNK = 3,
  PATCH_PATCHES = 4,
  PATCH_HAS_MORE = 5,

  ONE_PATCH_OFFSET = 1,
  ONE_PATCH_DATA = 2,

  /* Field numbers of RegisterTraceWriterRequest and
   * UnregisterTraceWriterRequest. */
  WRITER_ID = 1,
  WRITER_BUFFER = 2,

  MAX_ONE_PATCH = 2 + 6 + 2 + ST_PATCH_SIZE,
  /* The chunk of a patch is searched only among this number of the newest
   * moves. */
  MAX_DIRECT_SEARCH = 256,
};

static void clear(void* self) {
  struct st_commit_batch* b = self;
  b->pending.moves.size = b->pending.patches.size = b->changes.size = 0;
  b->chunk_bytes = 0;
  b->pending.flush_request_id = 0;
}

static bool invoke(struct st_commit_batch* b, uint32_t method,
                   const uint8_t* args, size_t size) {
  return st_send_queue_invoke(b->queue, b->methods.service_id, method, args,
                              size, true, -1) != 0;
}

/* Returns whether the send queue has room for a request.  The check comes
 * before the request is built, because building a request makes chunks
 * Complete, and Complete chunks can no longer be patched directly. */
static bool may_leave(struct st_commit_batch* b, size_t limit) {
  return !b->pending.shm ||
         st_send_queue_has_room(b->queue, limit + ST_IPC_INVOKE_OVERHEAD);
}

enum sent { SENT_NOTHING, SENT_SOME, SENT_ALL };

/* Sends one CommitDataRequest with as many of the pending commits as fit. */
static enum sent send_request(struct st_commit_batch* b) {
  uint8_t bytes[ST_COMMIT_MAX_REQUEST];
  struct st_commit_request request = {.bytes = bytes, .limit = sizeof bytes};
  if (b->pending.emulated) {
    request.bytes = b->request;
    request.limit = ST_COMMIT_MAX_EMULATED_REQUEST;
  }
  if (!may_leave(b, request.limit))
    return SENT_NOTHING;
  st_commit_request_build(&b->pending, &request);
  if (request.size > 0 &&
      !invoke(b, b->methods.commit_data, request.bytes, request.size)) {
    st_commit_request_kept(&b->pending);
    return SENT_NOTHING;
  }
  st_commit_request_sent(&b->pending, &request);
  return request.is_last ? SENT_ALL : SENT_SOME;
}

/* Sends all pending commits.  Returns false if some commits could not be
 * sent. */
static bool send_commits(struct st_commit_batch* b) {
  enum sent sent = SENT_ALL;
  if (b->pending.moves.size || b->pending.patches.size ||
      b->pending.flush_request_id) {
    do
      sent = send_request(b);
    while (sent == SENT_SOME);
  }
  if (sent == SENT_ALL)
    b->chunk_bytes = 0;
  return sent == SENT_ALL;
}

static bool send_change(struct st_commit_batch* b, uint16_t writer_id,
                        uint16_t buffer) {
  uint8_t args[16];
  uint8_t* p = st_put_u64_field(args, WRITER_ID, writer_id);
  uint32_t method = b->methods.unregister_trace_writer;
  if (buffer) {
    p = st_put_u64_field(p, WRITER_BUFFER, buffer);
    method = b->methods.register_trace_writer;
  }
  /* A service without this method does not scrape, so it needs no registration
   * of writers. */
  return method == 0 || invoke(b, method, args, (size_t)(p - args));
}

/* Registers or unregisters a writer at the service.  Returns false if the send
 * queue is full.  Sets *keep if the writer's target buffer is not bound yet. */
static bool send_resolved_change(struct st_commit_batch* b,
                                 struct st_writer_change change, bool* keep) {
  uint16_t buffer;
  *keep =
      !st_commit_pending_resolve(&b->pending, change.target_buffer, &buffer);
  bool has_no_buffer = change.target_buffer && !buffer;
  return *keep || has_no_buffer || send_change(b, change.writer_id, buffer);
}

static void send_changes(struct st_commit_batch* b) {
  size_t at = 0, kept = 0;
  struct st_writer_change change;
  for (; at < b->changes.size; at += sizeof change) {
    bool keep;
    memcpy(&change, b->changes.data + at, sizeof change);
    if (!send_resolved_change(b, change, &keep))
      break;
    if (!keep)
      continue;
    memcpy(b->changes.data + kept, &change, sizeof change);
    kept += sizeof change;
  }
  size_t rest = b->changes.size - at;
  if (rest > 0)
    memmove(b->changes.data + kept, b->changes.data + at, rest);
  b->changes.size = kept + rest;
}

static void send_all(struct st_commit_batch* b) {
  if (!b->queue)
    return;
  if (atomic_load(&b->queue->broken)) {
    clear(b);
    return;
  }
  if (send_commits(b))
    send_changes(b);
}

void st_commit_batch_flush(struct st_commit_batch* b) {
  pthread_mutex_lock(&b->mutex);
  send_all(b);
  pthread_mutex_unlock(&b->mutex);
}

bool st_commit_batch_bind_target(struct st_commit_batch* b,
                                 uint32_t reservation, uint16_t buffer) {
  pthread_mutex_lock(&b->mutex);
  bool done = st_commit_pending_bind(&b->pending, reservation, buffer);
  send_all(b);
  pthread_mutex_unlock(&b->mutex);
  return done;
}

/* Sends the finished fragments of a chunk that is being written.  The caller
 * holds the mutex, so the chunk cannot become free meanwhile.  Returns false if
 * the send queue is full. */
static bool send_incomplete(struct st_commit_batch* b, uint32_t page,
                            uint32_t index) {
  uint32_t bitmap = st_page_bitmap(b->pending.shm, page);
  struct st_chunk chunk;
  if (st_bitmap_state(bitmap, index) != ST_CHUNK_BEING_WRITTEN ||
      !st_chunk_at(b->pending.shm, page, st_bitmap_layout(bitmap), index,
                   &chunk))
    return true;
  struct st_chunk_header* header = st_chunk_header(&chunk);
  uint16_t packets =
      atomic_load_explicit(&header->packets, memory_order_acquire);
  uint16_t writer = atomic_load(&header->writer_id);
  uint32_t started = packets & ST_PACKETS_COUNT_MASK;
  uint16_t buffer;
  if (started < 2 || writer > ST_MAX_WRITER_ID ||
      !st_commit_pending_resolve(&b->pending, b->writer_buffer[writer],
                                 &buffer) ||
      !buffer)
    return true;

  /* The memory b->request holds the copy of the chunk, then the request. */
  uint8_t* copy = b->request;
  memset(copy, 0, chunk.size);
  struct st_chunk_header start = {atomic_load(&header->chunk_id), writer,
                                  packets};
  memcpy(copy, (void*)&start, sizeof start);
  st_copy_fragments(chunk.begin + sizeof start, chunk.size - sizeof start,
                    started - 1, copy + sizeof start);
  struct st_commit_request request = {.bytes = copy + chunk.size};
  st_commit_request_put_incomplete(&request, copy, chunk.size, buffer);
  return invoke(b, b->methods.commit_data, request.bytes, request.size);
}

/* Sends the finished fragments of all chunks that are being written.  Before
 * that, sends the batched chunks, so that the chunks of a sequence stay in
 * order. */
static void send_unfinished_chunks(struct st_commit_batch* b) {
  if (!b->writer_buffer || !b->queue || !send_commits(b))
    return;
  for (uint32_t page = 0; page < b->pending.shm->num_pages; page++) {
    uint32_t layout = st_bitmap_layout(st_page_bitmap(b->pending.shm, page));
    for (uint32_t i = 0; i < st_layout_chunks(layout); i++)
      if (!send_incomplete(b, page, i))
        return;
  }
}

void st_commit_batch_notify_flush_complete(struct st_commit_batch* b,
                                           uint64_t id) {
  pthread_mutex_lock(&b->mutex);
  send_unfinished_chunks(b);
  /* An acknowledgement of this flush id also acknowledges all earlier
   * flushes. */
  if (id > b->pending.flush_request_id)
    b->pending.flush_request_id = id;
  send_all(b);
  pthread_mutex_unlock(&b->mutex);
}

static void append_move(struct st_commit_batch* b,
                        struct st_pending_move move) {
  uint8_t* p =
      st_commit_pending_reserve(&b->pending, &b->pending.moves, sizeof move);
  if (!p)
    return;
  memcpy(p, &move, sizeof move);
  b->pending.moves.size += sizeof move;
  b->chunk_bytes += move.chunk.size;
  if (b->chunk_bytes >= b->batch_bytes)
    send_all(b);
}

static void chunk_complete(void* self, const struct st_chunk* chunk,
                           uint32_t target_buffer) {
  struct st_commit_batch* b = self;
  struct st_pending_move move = {.chunk = *chunk,
                                 .target_buffer = target_buffer};
  pthread_mutex_lock(&b->mutex);
  append_move(b, move);
  pthread_mutex_unlock(&b->mutex);
}

static struct st_pending_move unpatched_move(const struct st_chunk* chunk,
                                             uint32_t target_buffer) {
  struct st_chunk_header* header = st_chunk_header(chunk);
  return (struct st_pending_move){.chunk = *chunk,
                                  .chunk_id = atomic_load(&header->chunk_id),
                                  .writer_id = atomic_load(&header->writer_id),
                                  .target_buffer = target_buffer,
                                  .being_written = true};
}

static bool chunk_unpatched(void* self, const struct st_chunk* chunk,
                            uint32_t target_buffer) {
  struct st_commit_batch* b = self;
  pthread_mutex_lock(&b->mutex);
  bool stays = b->pending.shm != NULL;
  if (stays)
    append_move(b, unpatched_move(chunk, target_buffer));
  pthread_mutex_unlock(&b->mutex);
  return stays;
}

/* Returns the batched chunk that the patches change, or NULL. */
static struct st_pending_move* find_unpatched(
    struct st_commit_batch* b, const struct st_chunk_patches* patches) {
  size_t count;
  struct st_pending_move* moves = st_commit_pending_moves(&b->pending, &count);
  size_t first = count > MAX_DIRECT_SEARCH ? count - MAX_DIRECT_SEARCH : 0;
  for (size_t i = count; i-- > first;)
    if (moves[i].being_written && moves[i].chunk_id == patches->chunk_id &&
        moves[i].writer_id == patches->writer_id)
      return &moves[i];
  return NULL;
}

static void patch_chunk(struct st_commit_batch* b, struct st_pending_move* move,
                        const struct st_chunk_patches* patches) {
  uint8_t* payload = move->chunk.begin + ST_CHUNK_HEADER_SIZE;
  const struct st_patch* patch = patches->first;
  for (uint32_t i = 0; i < patches->count; i++, patch = patch->next)
    memcpy(payload + patch->offset, patch->size_field, ST_PATCH_SIZE);
  if (patches->has_more)
    return;
  uint16_t flag = ST_CHUNK_NEEDS_PATCHING << ST_PACKETS_FLAGS_SHIFT;
  atomic_fetch_and(&st_chunk_header(&move->chunk)->packets, (uint16_t)~flag);
  st_chunk_release_as_complete(b->pending.shm, &move->chunk);
  move->being_written = false;
}

static uint8_t* put_one_patch(uint8_t* p, const struct st_patch* patch) {
  uint8_t body[MAX_ONE_PATCH];
  uint8_t* end = st_put_u64_field(body, ONE_PATCH_OFFSET, patch->offset);
  end =
      st_put_bytes_field(end, ONE_PATCH_DATA, patch->size_field, ST_PATCH_SIZE);
  return st_put_bytes_field(p, PATCH_PATCHES, body, (size_t)(end - body));
}

/* Appends one entry with `count` patches, starting with `patch`.  Returns the
 * first patch after these. */
static const struct st_patch* append_patches(
    struct st_commit_batch* b, const struct st_chunk_patches* chunk,
    const struct st_patch* patch, uint32_t count, bool has_more) {
  struct st_pending_patches head = {.target_buffer = chunk->target_buffer};
  uint8_t* at =
      st_commit_pending_reserve(&b->pending, &b->pending.patches,
                                sizeof head + ST_COMMIT_MAX_PATCH_ENTRY);
  if (!at)
    return NULL;
  uint8_t* rest = at + sizeof head;
  uint8_t* p = st_put_u64_field(rest, PATCH_WRITER, chunk->writer_id);
  p = st_put_u64_field(p, PATCH_CHUNK, chunk->chunk_id);
  for (; count > 0; count--, patch = patch->next)
    p = put_one_patch(p, patch);
  if (has_more)
    p = st_put_u64_field(p, PATCH_HAS_MORE, 1);
  head.size = (uint32_t)(p - rest);
  memcpy(at, &head, sizeof head);
  b->pending.patches.size = (size_t)(p - b->pending.patches.data);
  return patch;
}

static void patch_in_service(struct st_commit_batch* b,
                             const struct st_chunk_patches* chunk) {
  const struct st_patch* next = chunk->first;
  uint32_t left = chunk->count;
  while (left > 0 && next) {
    uint32_t count = left < ST_COMMIT_MAX_PATCHES_PER_ENTRY
                         ? left
                         : ST_COMMIT_MAX_PATCHES_PER_ENTRY;
    left -= count;
    next = append_patches(b, chunk, next, count, left > 0 || chunk->has_more);
  }
  send_all(b);
}

static void patch(void* self, const struct st_chunk_patches* chunk) {
  struct st_commit_batch* b = self;
  pthread_mutex_lock(&b->mutex);
  struct st_pending_move* move = find_unpatched(b, chunk);
  if (move)
    patch_chunk(b, move, chunk);
  else
    patch_in_service(b, chunk);
  pthread_mutex_unlock(&b->mutex);
}

static void flush(void* self) {
  st_commit_batch_flush(self);
}

/* Removes the pending registration of a writer.  Returns false if there is none
 * because the registration was already sent. */
static bool cancel_registration(struct st_commit_batch* b, uint16_t writer_id) {
  struct st_writer_change change;
  for (size_t at = 0; at < b->changes.size; at += sizeof change) {
    memcpy(&change, b->changes.data + at, sizeof change);
    if (change.writer_id != writer_id || !change.target_buffer)
      continue;
    size_t end = at + sizeof change;
    memmove(b->changes.data + at, b->changes.data + end, b->changes.size - end);
    b->changes.size -= sizeof change;
    return true;
  }
  return false;
}

static void append_change(struct st_commit_batch* b,
                          struct st_writer_change change) {
  uint8_t* p =
      st_commit_pending_reserve(&b->pending, &b->changes, sizeof change);
  if (!p)
    return;
  memcpy(p, &change, sizeof change);
  b->changes.size += sizeof change;
}

static void change_writer(struct st_commit_batch* b, uint16_t writer_id,
                          uint32_t target_buffer) {
  struct st_writer_change change = {writer_id, target_buffer};
  pthread_mutex_lock(&b->mutex);
  if (b->writer_buffer)
    b->writer_buffer[writer_id] = target_buffer;
  if (target_buffer || !cancel_registration(b, writer_id))
    append_change(b, change);
  send_all(b);
  pthread_mutex_unlock(&b->mutex);
}

static void register_writer(void* self, uint16_t writer_id,
                            uint32_t target_buffer) {
  change_writer(self, writer_id, target_buffer);
}

static void unregister_writer(void* self, uint16_t writer_id) {
  change_writer(self, writer_id, 0);
}

const struct st_commit_sink st_commit_batch_sink = {
    .chunk_complete = chunk_complete,
    .chunk_unpatched = chunk_unpatched,
    .patch = patch,
    .flush = flush,
    .register_writer = register_writer,
    .unregister_writer = unregister_writer,
};

static void on_room(void* self) {
  st_commit_batch_flush(self);
}

bool st_commit_batch_init(struct st_commit_batch* b,
                          struct st_send_queue* queue,
                          const struct st_producer_methods* methods,
                          uint32_t batch_bytes) {
  memset(b, 0, sizeof *b);
  b->queue = queue;
  b->batch_bytes = batch_bytes;
  if (methods)
    b->methods = *methods;
  if (pthread_mutex_init(&b->mutex, NULL) != 0)
    return false;
  b->fork =
      (struct st_fork_entry){.mutexes = {&b->mutex}, .child = clear, .self = b};
  st_fork_register(&b->fork);
  if (queue)
    st_send_queue_set_room_listener(queue, on_room, b);
  return true;
}

void st_commit_batch_bind(struct st_commit_batch* b,
                          struct st_send_queue* queue,
                          const struct st_producer_methods* methods) {
  /* The batch locks the queue's mutex while it holds its own mutex.  So the
   * batch must be registered with the fork guard after the queue
   * (fork_guard.h). */
  st_fork_unregister(&b->fork);
  st_fork_register(&b->fork);
  pthread_mutex_lock(&b->mutex);
  b->methods = *methods;
  b->queue = queue;
  send_all(b);
  pthread_mutex_unlock(&b->mutex);
  st_send_queue_set_room_listener(queue, on_room, b);
}

void st_commit_batch_patch_directly(struct st_commit_batch* b,
                                    const struct st_shm* shm) {
  pthread_mutex_lock(&b->mutex);
  b->pending.shm = shm;
  pthread_mutex_unlock(&b->mutex);
}

/* Stores the target buffers of the writers that were registered before
 * emulation was switched on. */
static void note_writers(struct st_commit_batch* b) {
  struct st_writer_change change;
  for (size_t at = 0; at < b->changes.size; at += sizeof change) {
    memcpy(&change, b->changes.data + at, sizeof change);
    b->writer_buffer[change.writer_id] = change.target_buffer;
  }
}

bool st_commit_batch_emulate(struct st_commit_batch* b,
                             const struct st_shm* shm, bool scrapable) {
  uint8_t* request = malloc(ST_COMMIT_MAX_EMULATED_REQUEST + ST_MAX_PAGE_SIZE);
  uint32_t* buffers =
      scrapable ? calloc(ST_MAX_WRITER_ID + 1, sizeof *buffers) : NULL;
  if (!request || (scrapable && !buffers)) {
    free(request);
    free(buffers);
    return false;
  }
  pthread_mutex_lock(&b->mutex);
  b->pending.shm = shm;
  b->pending.emulated = true;
  b->request = request;
  b->writer_buffer = buffers;
  if (buffers)
    note_writers(b);
  pthread_mutex_unlock(&b->mutex);
  return true;
}

void st_commit_batch_destroy(struct st_commit_batch* b) {
  if (b->queue)
    st_send_queue_set_room_listener(b->queue, NULL, NULL);
  st_commit_batch_flush(b);
  st_fork_unregister(&b->fork);
  st_commit_pending_destroy(&b->pending);
  free(b->changes.data);
  free(b->writer_buffer);
  free(b->request);
  pthread_mutex_destroy(&b->mutex);
}
