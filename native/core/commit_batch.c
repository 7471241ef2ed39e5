#include "commit_batch.h"

#include <stdlib.h>
#include <string.h>

#include "decoder.h"
#include "wire.h"

enum {
  COMMIT_MOVE = 1,
  COMMIT_PATCH = 2,
  COMMIT_FLUSH_ID = 3,

  MOVE_PAGE = 1,
  MOVE_CHUNK = 2,
  MOVE_BUFFER = 3,

  PATCH_BUFFER = 1,
  PATCH_WRITER = 2,
  PATCH_CHUNK = 3,
  PATCH_PATCHES = 4,
  PATCH_HAS_MORE = 5,

  ONE_PATCH_OFFSET = 1,
  ONE_PATCH_DATA = 2,

  WRITER_ID = 1, /* in RegisterTraceWriter and UnregisterTraceWriter */
  WRITER_BUFFER = 2,

  MAX_MOVE = 2 + 3 * 6,
  /* More ready patches than this for one chunk become several entries, so
   * that each fits into a request. */
  MAX_PATCHES_PER_ENTRY = 256,
  MAX_ONE_PATCH = 2 + 6 + 2 + ST_PATCH_SIZE,
  MAX_PATCH_ENTRY = 32 + MAX_PATCHES_PER_ENTRY * MAX_ONE_PATCH,
  MAX_FLUSH_ID = 1 + ST_MAX_VARINT,
};

static_assert((int)MAX_PATCH_ENTRY <= (int)ST_COMMIT_MAX_REQUEST,
              "an entry must fit");

/* --- storage --- */

/* Room for n more bytes, or NULL: counted, and only a scrape finds them. */
static uint8_t* reserve(struct st_commit_batch* b, struct st_growing_bytes* g,
                        size_t n) {
  if (g->capacity - g->size >= n)
    return g->data + g->size;
  size_t capacity = g->capacity ? g->capacity : 1024;
  while (capacity - g->size < n)
    capacity *= 2;
  uint8_t* data =
      capacity <= ST_COMMIT_MAX_PENDING ? realloc(g->data, capacity) : NULL;
  if (!data) {
    b->lost_commits++;
    return NULL;
  }
  g->data = data;
  g->capacity = capacity;
  return g->data + g->size;
}

static void consume(struct st_growing_bytes* g, size_t n) {
  if (n == 0)
    return;
  g->size -= n;
  memmove(g->data, g->data + n, g->size);
}

static void clear(struct st_commit_batch* b) {
  b->moves.size = b->patches.size = b->changes.size = 0;
  b->chunk_bytes = 0;
  b->flush_request_id = 0;
}

/* --- sending --- */

/* Bytes of the longest run of whole entries that fits into `room`. */
static size_t whole_entries(const struct st_growing_bytes* g, size_t room) {
  if (g->size <= room)
    return g->size;
  struct st_decoder d;
  struct st_field entry;
  st_decoder_init(&d, g->data, g->size);
  size_t end = 0;
  while (st_decoder_next(&d, &entry)) {
    size_t next = g->size - st_decoder_left(&d);
    if (next > room)
      break;
    end = next;
  }
  return end;
}

static bool invoke(struct st_commit_batch* b, uint32_t method,
                   const uint8_t* args, size_t size) {
  return st_send_queue_invoke(b->queue, b->methods.service_id, method, args,
                              size, true, -1) != 0;
}

/* Sends one request, with as much as it can hold; false: nothing was sent. */
static bool send_request(struct st_commit_batch* b) {
  uint8_t request[ST_COMMIT_MAX_REQUEST + MAX_FLUSH_ID];
  uint8_t* p = request;

  size_t moves = whole_entries(&b->moves, ST_COMMIT_MAX_REQUEST);
  size_t patches = 0;
  if (moves == b->moves.size)
    patches = whole_entries(&b->patches, ST_COMMIT_MAX_REQUEST - moves);
  bool is_last = moves == b->moves.size && patches == b->patches.size;

  if (moves > 0)
    memcpy(p, b->moves.data, moves);
  p += moves;
  if (patches > 0)
    memcpy(p, b->patches.data, patches);
  p += patches;
  if (is_last && b->flush_request_id)
    p = st_put_u64_field(p, COMMIT_FLUSH_ID, b->flush_request_id);

  if (!invoke(b, b->methods.commit_data, request, (size_t)(p - request)))
    return false;
  consume(&b->moves, moves);
  consume(&b->patches, patches);
  if (is_last)
    b->flush_request_id = 0;
  return true;
}

static bool send_commits(struct st_commit_batch* b) {
  while (b->moves.size || b->patches.size || b->flush_request_id) {
    if (!send_request(b))
      return false;
  }
  b->chunk_bytes = 0;
  return true;
}

static bool send_change(struct st_commit_batch* b,
                        struct st_writer_change change) {
  uint8_t args[16];
  uint8_t* p = st_put_u64_field(args, WRITER_ID, change.writer_id);
  uint32_t method = b->methods.unregister_trace_writer;
  if (change.target_buffer) {
    p = st_put_u64_field(p, WRITER_BUFFER, change.target_buffer);
    method = b->methods.register_trace_writer;
  }
  return invoke(b, method, args, (size_t)(p - args));
}

static void send_changes(struct st_commit_batch* b) {
  size_t sent = 0;
  while (sent < b->changes.size) {
    struct st_writer_change change;
    memcpy(&change, b->changes.data + sent, sizeof change);
    if (!send_change(b, change))
      break;
    sent += sizeof change;
  }
  consume(&b->changes, sent);
}

static void send_all(struct st_commit_batch* b) {
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

void st_commit_batch_notify_flush_complete(struct st_commit_batch* b,
                                           uint64_t id) {
  pthread_mutex_lock(&b->mutex);
  /* A service takes an id for itself and all before it. */
  if (id > b->flush_request_id)
    b->flush_request_id = id;
  send_all(b);
  pthread_mutex_unlock(&b->mutex);
}

/* --- the sink --- */

static void append_move(struct st_commit_batch* b, const struct st_chunk* chunk,
                        uint16_t target_buffer) {
  uint8_t* p = reserve(b, &b->moves, MAX_MOVE);
  if (!p)
    return;
  uint8_t body[MAX_MOVE];
  uint8_t* end = st_put_u64_field(body, MOVE_PAGE, chunk->page);
  end = st_put_u64_field(end, MOVE_CHUNK, chunk->index);
  end = st_put_u64_field(end, MOVE_BUFFER, target_buffer);
  p = st_put_bytes_field(p, COMMIT_MOVE, body, (size_t)(end - body));
  b->moves.size = (size_t)(p - b->moves.data);
}

static void chunk_complete(void* self, const struct st_chunk* chunk,
                           uint16_t target_buffer) {
  struct st_commit_batch* b = self;
  pthread_mutex_lock(&b->mutex);
  append_move(b, chunk, target_buffer);
  b->chunk_bytes += chunk->size;
  if (b->chunk_bytes >= b->batch_bytes)
    send_all(b);
  pthread_mutex_unlock(&b->mutex);
}

static uint8_t* put_one_patch(uint8_t* p, const struct st_patch* patch) {
  uint8_t body[MAX_ONE_PATCH];
  uint8_t* end = st_put_u64_field(body, ONE_PATCH_OFFSET, patch->offset);
  end =
      st_put_bytes_field(end, ONE_PATCH_DATA, patch->size_field, ST_PATCH_SIZE);
  return st_put_bytes_field(p, PATCH_PATCHES, body, (size_t)(end - body));
}

/* Appends one entry of `count` patches from `patch` on; returns the patch
 * after them. */
static const struct st_patch* append_patches(
    struct st_commit_batch* b, const struct st_chunk_patches* chunk,
    const struct st_patch* patch, uint32_t count, bool has_more) {
  uint8_t* p = reserve(b, &b->patches, MAX_PATCH_ENTRY);
  if (!p)
    return NULL;
  p = st_put_tag(p, COMMIT_PATCH, ST_WIRE_DELIMITED);
  uint8_t* size_field = p;
  p += ST_SIZE_FIELD;
  p = st_put_u64_field(p, PATCH_BUFFER, chunk->target_buffer);
  p = st_put_u64_field(p, PATCH_WRITER, chunk->writer_id);
  p = st_put_u64_field(p, PATCH_CHUNK, chunk->chunk_id);
  for (; count > 0; count--, patch = patch->next)
    p = put_one_patch(p, patch);
  if (has_more)
    p = st_put_u64_field(p, PATCH_HAS_MORE, 1);
  st_put_size_field(size_field, (uint32_t)(p - size_field) - ST_SIZE_FIELD);
  b->patches.size = (size_t)(p - b->patches.data);
  return patch;
}

static void patch(void* self, const struct st_chunk_patches* chunk) {
  struct st_commit_batch* b = self;
  pthread_mutex_lock(&b->mutex);
  const struct st_patch* next = chunk->first;
  uint32_t left = chunk->count;
  while (left > 0 && next) {
    uint32_t count =
        left < MAX_PATCHES_PER_ENTRY ? left : MAX_PATCHES_PER_ENTRY;
    left -= count;
    next = append_patches(b, chunk, next, count, left > 0 || chunk->has_more);
  }
  send_all(b);
  pthread_mutex_unlock(&b->mutex);
}

static void flush(void* self) {
  st_commit_batch_flush(self);
}

static void change_writer(struct st_commit_batch* b, uint16_t writer_id,
                          uint16_t target_buffer) {
  struct st_writer_change change = {writer_id, target_buffer};
  pthread_mutex_lock(&b->mutex);
  uint8_t* p = reserve(b, &b->changes, sizeof change);
  if (p) {
    memcpy(p, &change, sizeof change);
    b->changes.size += sizeof change;
  }
  send_all(b);
  pthread_mutex_unlock(&b->mutex);
}

static void register_writer(void* self, uint16_t writer_id,
                            uint16_t target_buffer) {
  change_writer(self, writer_id, target_buffer);
}

static void unregister_writer(void* self, uint16_t writer_id) {
  change_writer(self, writer_id, 0);
}

const struct st_commit_sink st_commit_batch_sink = {
    .chunk_complete = chunk_complete,
    .patch = patch,
    .flush = flush,
    .register_writer = register_writer,
    .unregister_writer = unregister_writer,
};

/* --- life --- */

static void on_room(void* self) {
  st_commit_batch_flush(self);
}

static void lock_for_fork(void* self) {
  pthread_mutex_lock(&((struct st_commit_batch*)self)->mutex);
}

static void unlock_after_fork(void* self) {
  pthread_mutex_unlock(&((struct st_commit_batch*)self)->mutex);
}

static void clear_in_child(void* self) {
  clear(self);
  unlock_after_fork(self);
}

bool st_commit_batch_init(struct st_commit_batch* b,
                          struct st_send_queue* queue,
                          const struct st_producer_methods* methods,
                          uint32_t batch_bytes) {
  memset(b, 0, sizeof *b);
  b->queue = queue;
  b->methods = *methods;
  b->batch_bytes = batch_bytes;
  if (pthread_mutex_init(&b->mutex, NULL) != 0)
    return false;
  b->fork = (struct st_fork_entry){
      .prepare = lock_for_fork,
      .parent = unlock_after_fork,
      .child = clear_in_child,
      .self = b,
  };
  st_fork_register(&b->fork);
  st_send_queue_set_room_listener(queue, on_room, b);
  return true;
}

void st_commit_batch_destroy(struct st_commit_batch* b) {
  st_send_queue_set_room_listener(b->queue, NULL, NULL);
  st_commit_batch_flush(b);
  st_fork_unregister(&b->fork);
  free(b->moves.data);
  free(b->patches.data);
  free(b->changes.data);
  pthread_mutex_destroy(&b->mutex);
}
