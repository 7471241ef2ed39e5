/* Handles a producer's CommitDataRequest: all moves, then all patches, then the
 * acknowledgement of a flush. */
#include <string.h>

#include "decoder.h"
#include "producer_endpoint_internal.h"
#include "wire.h"

/* The largest number of patches for one chunk in one request. */
enum { MAX_PATCHES = 1024 };

/* Field numbers of CommitDataRequest and its submessages. */
enum {
  REQUEST_CHUNKS_TO_MOVE = 1,
  REQUEST_CHUNKS_TO_PATCH = 2,
  REQUEST_FLUSH_ID = 3,

  MOVE_PAGE = 1,
  MOVE_CHUNK = 2,
  MOVE_TARGET_BUFFER = 3,
  MOVE_DATA = 4,
  MOVE_INCOMPLETE = 5,

  TO_PATCH_TARGET_BUFFER = 1,
  TO_PATCH_WRITER_ID = 2,
  TO_PATCH_CHUNK_ID = 3,
  TO_PATCH_PATCHES = 4,
  TO_PATCH_HAS_MORE = 5,

  PATCH_OFFSET = 1,
  PATCH_DATA = 2,
};

/* Returns the low 32 bits of a field's value, as protobuf defines for
 * uint32. */
static uint32_t number_of(const struct st_field* f) {
  return f->wire_type == ST_WIRE_VARINT ? (uint32_t)f->value : 0;
}

struct move {
  uint32_t page, chunk, target_buffer;
  /* The chunk and its header, which the request contains under emulation; else
   * NULL. */
  const uint8_t* data;
  size_t size;
  bool incomplete;
};

static bool parse_move(const struct st_field* message, struct move* m) {
  struct st_decoder d;
  struct st_field f;
  memset(m, 0, sizeof *m);
  st_decoder_init(&d, message->data, message->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == MOVE_PAGE)
      m->page = number_of(&f);
    if (f.number == MOVE_CHUNK)
      m->chunk = number_of(&f);
    if (f.number == MOVE_TARGET_BUFFER)
      m->target_buffer = number_of(&f);
    if (f.number == MOVE_INCOMPLETE)
      m->incomplete = number_of(&f) != 0;
    if (f.number == MOVE_DATA && f.wire_type == ST_WIRE_DELIMITED) {
      m->data = f.data;
      m->size = f.size;
    }
  }
  return !st_decoder_left(&d);
}

/* Copies a chunk that the request itself contains, usually because the producer
 * has no shared memory.  The page number in this entry is ignored. */
static void move_data(struct st_producer_endpoint* e, const struct move* m) {
  if (m->size < ST_CHUNK_HEADER_SIZE || m->size >= ST_MAX_PAGE_SIZE)
    return;
  if (e->shm.num_pages && m->page >= e->shm.num_pages)
    return;
  struct st_chunk_header header;
  memcpy((void*)&header, m->data, sizeof header);
  struct st_chunk_copy copy = st_endpoint_read_header(e, &header);
  copy.complete = true;
  if (m->incomplete)
    st_endpoint_trust_finished(&copy);
  copy.payload = m->data + ST_CHUNK_HEADER_SIZE;
  copy.payload_size = m->size - ST_CHUNK_HEADER_SIZE;
  pthread_mutex_lock(&e->mutex);
  st_endpoint_copy_chunk(e, &copy, m->target_buffer);
  pthread_mutex_unlock(&e->mutex);
}

static bool handle_move(struct st_producer_endpoint* e,
                        const struct st_field* message) {
  struct move m;
  if (!parse_move(message, &m))
    return false;
  if (m.data)
    move_data(e, &m);
  else
    st_producer_endpoint_move_chunk(e, m.page, m.chunk, m.target_buffer);
  return true;
}

struct to_patch {
  uint32_t target_buffer, writer_id, chunk_id;
  bool has_more;
  /* The number of patches that were refused because of a wrong size. */
  uint32_t refused;
  /* The number of valid patches.  It may exceed MAX_PATCHES. */
  uint32_t count;
  struct st_patch_data patches[MAX_PATCHES];
};

static bool parse_patch(const struct st_field* message,
                        struct st_patch_data* patch) {
  struct st_decoder d;
  struct st_field f;
  bool has_data = false;
  patch->offset = 0;
  st_decoder_init(&d, message->data, message->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == PATCH_OFFSET)
      patch->offset = number_of(&f);
    if (f.number != PATCH_DATA)
      continue;
    has_data = f.wire_type == ST_WIRE_DELIMITED && f.size == ST_PATCH_SIZE;
    if (has_data)
      memcpy(patch->data, f.data, ST_PATCH_SIZE);
  }
  return has_data && !st_decoder_left(&d);
}

static void add_patch(struct to_patch* t, const struct st_field* message) {
  struct st_patch_data patch;
  bool good =
      message->wire_type == ST_WIRE_DELIMITED && parse_patch(message, &patch);
  if (!good)
    t->refused++;
  else if (t->count++ < MAX_PATCHES)
    t->patches[t->count - 1] = patch;
}

static bool parse_to_patch(const struct st_field* message, struct to_patch* t) {
  struct st_decoder d;
  struct st_field f;
  t->target_buffer = t->writer_id = t->chunk_id = t->count = 0;
  t->has_more = false;
  t->refused = 0;
  st_decoder_init(&d, message->data, message->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == TO_PATCH_TARGET_BUFFER)
      t->target_buffer = number_of(&f);
    if (f.number == TO_PATCH_WRITER_ID)
      t->writer_id = number_of(&f);
    if (f.number == TO_PATCH_CHUNK_ID)
      t->chunk_id = number_of(&f);
    if (f.number == TO_PATCH_HAS_MORE)
      t->has_more = number_of(&f) != 0;
    if (f.number == TO_PATCH_PATCHES)
      add_patch(t, &f);
  }
  return !st_decoder_left(&d);
}

static bool handle_patches(struct st_producer_endpoint* e,
                           const struct st_field* message) {
  struct to_patch t;
  if (!parse_to_patch(message, &t))
    return false;
  /* A patch needs no permission check: it changes only chunks of its own
   * producer, in any buffer. */
  struct st_trace_buffer* buffer = NULL;
  uint16_t writer = (uint16_t)t.writer_id, target = (uint16_t)t.target_buffer;
  if (t.count + t.refused <= MAX_PATCHES && st_is_writer_id(writer))
    buffer = st_buffer_table_acquire(e->buffers, target);
  st_endpoint_count(e, &e->stats.patches_discarded,
                    buffer ? t.refused : t.count + t.refused);
  if (!buffer)
    return true;
  st_trace_buffer_patch(buffer, e->producer_id, writer, t.chunk_id, t.patches,
                        t.count, t.has_more);
  st_buffer_table_release(e->buffers, target);
  return true;
}

/* Handles all entries of the request that have this field number.  Returns
 * false if an entry is malformed. */
static bool handle_entries(struct st_producer_endpoint* e,
                           const uint8_t* request, size_t size, uint32_t number,
                           bool (*handle)(struct st_producer_endpoint*,
                                          const struct st_field*)) {
  struct st_decoder d;
  struct st_field f;
  bool good = true;
  st_decoder_init(&d, request, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number != number)
      continue;
    if (f.wire_type != ST_WIRE_DELIMITED || !handle(e, &f))
      good = false;
  }
  return good && !st_decoder_left(&d);
}

static uint64_t find_flush_id(const uint8_t* request, size_t size) {
  struct st_decoder d;
  struct st_field f;
  uint64_t id = 0;
  st_decoder_init(&d, request, size);
  while (st_decoder_next(&d, &f))
    if (f.number == REQUEST_FLUSH_ID && f.wire_type == ST_WIRE_VARINT)
      id = f.value;
  return id;
}

bool st_producer_endpoint_commit(struct st_producer_endpoint* e,
                                 const uint8_t* request, size_t size,
                                 uint64_t* flush_request_id) {
  bool moved =
      handle_entries(e, request, size, REQUEST_CHUNKS_TO_MOVE, handle_move);
  bool patched =
      handle_entries(e, request, size, REQUEST_CHUNKS_TO_PATCH, handle_patches);
  *flush_request_id = find_flush_id(request, size);
  if (moved && patched)
    return true;
  st_endpoint_count(e, &e->stats.malformed_requests, 1);
  return false;
}
